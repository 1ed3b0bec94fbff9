/** Messages that were taken on this page. Their receipts are in memory alone: when the page goes, they reappear in the queue. */

import type { Message, Receipt } from '../../protocol';

export class Taken {
  messages = $state.raw<readonly Message[]>([]);

  add(messages: readonly Message[]): void {
    const before = this.messages.filter(({ id }) => !messages.some((message) => message.id === id));
    this.messages = [...messages, ...before];
  }

  has(id: string): boolean {
    return this.messages.some((message) => message.id === id);
  }

  /** A message was updated: it has a new receipt. */
  renew(receipt: Receipt, text: string | undefined): void {
    this.messages = this.messages.map((message) =>
      message.id === receipt.id ? { ...message, ...receipt, ...(text === undefined ? {} : { text }) } : message,
    );
  }

  remove(id: string): void {
    this.messages = this.messages.filter((message) => message.id !== id);
  }

  clear(): void {
    this.messages = [];
  }
}
