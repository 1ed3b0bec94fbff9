/**
 * Moves messages between queues as `larimar queue move` does: a message is put into the other queue and only then deleted
 * from the first. If it stops in between, no message is lost; one may be there twice.
 */

import { MESSAGES_MAX, ProtocolError, type Client, type Message } from '../../protocol';

type Queues = Client['queues'];

/** How long taken messages are hidden: far longer than it takes to put a few of them. */
export const HIDDEN_SECONDS = 120;
const POISON = '-poison';

/** Where messages of a queue go: `orders-poison` gives `orders`. Empty if the name does not say. */
export function targetOf(queue: string): string {
  return queue.endsWith(POISON) ? queue.slice(0, -POISON.length) : '';
}

export async function moveMessages(
  queues: Pick<Queues, 'get' | 'put' | 'deleteMessage' | 'properties'>,
  from: string,
  to: string,
  most: number,
  options: { signal: AbortSignal; onMoved: (moved: number) => void; now?: () => number },
): Promise<number> {
  const { signal } = options;
  // Before the first message is hidden: a queue that does not exist is an error that changes nothing.
  await queues.properties(to, { signal });
  let moved = 0;
  // Consumers may return messages to the first queue as fast as they come, so there is an end.
  while (moved < most) {
    const count = Math.min(MESSAGES_MAX, most - moved);
    const messages = await queues.get(from, { count, visibilitySeconds: HIDDEN_SECONDS, signal });
    if (messages.length === 0) break;
    for (const message of messages) {
      const ttlSeconds = ttlOf(message, options.now?.() ?? Date.now());
      // Cancelling waits for the message that is on its way, so that it is not there twice.
      signal.throwIfAborted();
      await queues.put(to, message.text, { ttlSeconds });
      await remove(queues, from, message);
      options.onMoved(++moved);
    }
  }
  return moved;
}

/** The moved message expires when the first one would have; -1: never. */
export function ttlOf(message: Message, now: number): number {
  const expires = Date.parse(message.expires);
  if (Number.isNaN(expires) || expires >= NEVER) return -1;
  return Math.max(1, Math.floor((expires - now) / 1000));
}

/** Deletes a message that was taken. One that another consumer has taken since is left to it. */
async function remove(queues: Pick<Queues, 'deleteMessage'>, queue: string, message: Message): Promise<void> {
  try {
    await queues.deleteMessage(queue, { id: message.id, popReceipt: message.popReceipt ?? '' });
  } catch (error) {
    const gone = error instanceof ProtocolError && ['PopReceiptMismatch', 'MessageNotFound'].includes(error.code);
    if (!gone) throw error;
  }
}

/** The services write the year 9999 for messages that never expire. */
const NEVER = Date.UTC(9999, 0, 1);
