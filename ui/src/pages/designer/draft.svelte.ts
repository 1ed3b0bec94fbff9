/** The description that is being written. It stays while the user looks at other pages, and is kept for the next visit. */

import { readStored, writeStored } from '../../app/stored';

class Draft {
  text = $state('');
  /** The example that the text is, unchanged. */
  example = $state('');

  constructor() {
    this.text = readStored('designer', (value): value is string => typeof value === 'string') ?? '';
  }

  /** Starts with another text. */
  start(text: string, example = ''): void {
    this.text = text;
    this.example = example;
    this.#store();
  }

  change(text: string): void {
    if (text === this.text) return;
    this.text = text;
    this.example = '';
    this.#store();
  }

  #store(): void {
    writeStored('designer', this.text && !this.example && this.text.length <= STORED_CHARS_MAX ? this.text : undefined);
  }
}

export const draft = new Draft();

const STORED_CHARS_MAX = 100_000;
