/** Moving messages between queues in memory. */
import { expect, test } from 'vitest';
import { ProtocolError, type Message } from '../../protocol';
import { moveMessages, targetOf, ttlOf } from './move';

const message = (id: number, expires = 'Fri, 31 Dec 9999 23:59:59 GMT'): Message => ({
  id: String(id),
  text: `text ${id}`,
  inserted: '',
  expires,
  dequeueCount: 6,
  popReceipt: `receipt ${id}`,
});

/** Queues in memory that note what is done to them. */
function fake(count: number, fail: (step: string) => void = () => undefined) {
  const steps: string[] = [];
  const waiting = Array.from({ length: count }, (_, at) => message(at + 1));
  const note = (step: string) => {
    fail(step);
    steps.push(step);
  };
  const queues = {
    properties: (queue: string) => {
      note(`look at ${queue}`);
      return Promise.resolve({ approximateMessages: 0, metadata: new Map() });
    },
    get: (_queue: string, { count: most = 1 }: { count?: number } = {}) => Promise.resolve(waiting.splice(0, most)),
    put: async (queue: string, text: string) => {
      await Promise.resolve();
      note(`put ${text} to ${queue}`);
      return message(0);
    },
    deleteMessage: async (queue: string, { id }: { id: string }) => {
      await Promise.resolve();
      note(`delete ${id} of ${queue}`);
    },
  };
  return { queues, steps };
}

const options = () => ({ signal: new AbortController().signal, onMoved: () => undefined });

test('a message is deleted after it was put, and the number of messages at the start is the end', async () => {
  const { queues, steps } = fake(40);
  expect(await moveMessages(queues, 'a-poison', 'a', 33, options())).toBe(33);
  expect(steps.slice(0, 3)).toEqual(['look at a', 'put text 1 to a', 'delete 1 of a-poison']);
  expect(steps).toHaveLength(1 + 2 * 33);
});

test('a queue that does not exist changes nothing', async () => {
  const { queues, steps } = fake(2, (step) => {
    if (step === 'look at a') throw new ProtocolError(404, 'QueueNotFound', 'no such queue');
  });
  await expect(moveMessages(queues, 'a-poison', 'a', 2, options())).rejects.toThrow('no such queue');
  expect(steps).toEqual([]);
});

test('a message that somebody else took meanwhile is left to them', async () => {
  const { queues } = fake(2, (step) => {
    if (step.startsWith('delete 1')) throw new ProtocolError(400, 'PopReceiptMismatch', '');
  });
  expect(await moveMessages(queues, 'a-poison', 'a', 2, options())).toBe(2);
});

test('the time of expiry stays', () => {
  expect(ttlOf(message(1), 0)).toBe(-1);
  expect(ttlOf(message(1, 'Tue, 17 Nov 2026 08:01:00 GMT'), Date.UTC(2026, 10, 17, 8))).toBe(60);
  expect(ttlOf(message(1, 'Tue, 17 Nov 2026 08:01:00 GMT'), Date.UTC(2026, 10, 18))).toBe(1);
  expect(targetOf('orders-poison')).toBe('orders');
  expect(targetOf('orders')).toBe('');
});
