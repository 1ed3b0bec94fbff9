/** A question before something that cannot be undone. */

export interface Question {
  readonly title: string;
  readonly text: string;
  /** What the button says, such as `Delete table`. */
  readonly action: string;
  readonly danger?: boolean;
  /** The user has to type this before the button works. */
  readonly typed?: string;
}

class Confirm {
  question = $state.raw<Question>();
  #answer: ((yes: boolean) => void) | undefined;

  ask(question: Question): Promise<boolean> {
    this.answer(false);
    this.question = question;
    return new Promise((resolve) => (this.#answer = resolve));
  }

  answer(yes: boolean): void {
    this.#answer?.(yes);
    this.#answer = undefined;
    this.question = undefined;
  }
}

const state = new Confirm();
export { state as confirmState };

/** Asks the user. `true`: go on. */
export function confirm(question: Question): Promise<boolean> {
  return state.ask(question);
}
