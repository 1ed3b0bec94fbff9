/** The Queue service: queues, messages, metadata, stored access policies. */

import { parsePolicies, policiesToXml, type StoredPolicy } from './acl';
import { metadataHeaders, metadataOf, metadataOfXml, type Metadata } from './metadata';
import type { CallOptions, RequestOptions, Transport } from './transport';
import { child, children, childText, document, element, parseXml } from './xml';

export interface Queue {
  readonly name: string;
  readonly metadata: Metadata;
}

export interface QueueProperties {
  /** At least the messages that are there, also invisible ones. */
  readonly approximateMessages: number;
  readonly metadata: Metadata;
}

/** A message; what `get` adds is missing in peeked ones. Times are as the service writes them. */
export interface Message {
  readonly id: string;
  readonly text: string;
  readonly inserted: string;
  readonly expires: string;
  readonly dequeueCount: number;
  readonly popReceipt?: string;
  readonly nextVisible?: string;
}

/** What is needed to update or delete a message. */
export interface Receipt {
  readonly id: string;
  readonly popReceipt: string;
  readonly nextVisible: string;
}

/** Messages of one request. */
export const MESSAGES_MAX = 32;

export class Queues {
  constructor(readonly transport: Transport) {}

  /** A page of queues in the order of their names. */
  async list(
    options: CallOptions & { prefix?: string; marker?: string; max?: number } = {},
  ): Promise<{ queues: Queue[]; next?: string }> {
    const { credential } = this.transport;
    if (credential.kind === 'sas' && credential.scope?.service === 'queue') {
      return { queues: [{ name: credential.scope.name, metadata: new Map() }] };
    }
    const response = await this.#send({
      path: '/',
      query: {
        comp: 'list',
        include: 'metadata',
        prefix: options.prefix || undefined,
        marker: options.marker,
        maxresults: options.max,
      },
      signal: options.signal,
    });
    const root = parseXml(await response.text());
    const queues = children(child(root, 'Queues'), 'Queue').map((queue) => ({
      name: childText(queue, 'Name') ?? '',
      metadata: metadataOfXml(child(queue, 'Metadata')),
    }));
    const next = childText(root, 'NextMarker');
    return { queues, ...(next ? { next } : {}) };
  }

  async create(queue: string, metadata: Metadata = new Map(), options: CallOptions = {}): Promise<void> {
    await this.#send({
      method: 'PUT',
      path: `/${queue}`,
      headers: metadataHeaders(metadata),
      signal: options.signal,
    });
  }

  async delete(queue: string, options: CallOptions = {}): Promise<void> {
    await this.#send({ method: 'DELETE', path: `/${queue}`, signal: options.signal });
  }

  async properties(queue: string, options: CallOptions = {}): Promise<QueueProperties> {
    const response = await this.#send({ path: `/${queue}`, query: { comp: 'metadata' }, signal: options.signal });
    return {
      approximateMessages: Number(response.headers.get('x-ms-approximate-messages-count') ?? 0),
      metadata: metadataOf(response.headers),
    };
  }

  /** Replaces all metadata. */
  async setMetadata(queue: string, metadata: Metadata, options: CallOptions = {}): Promise<void> {
    await this.#send({
      method: 'PUT',
      path: `/${queue}`,
      query: { comp: 'metadata' },
      headers: metadataHeaders(metadata),
      signal: options.signal,
    });
  }

  /** Shows up to 32 visible messages and leaves them as they are. */
  async peek(queue: string, count: number, options: CallOptions = {}): Promise<Message[]> {
    const query = { peekonly: 'true', numofmessages: count };
    return messagesOf(await this.#send({ path: `/${queue}/messages`, query, signal: options.signal }));
  }

  /** Takes up to 32 messages: they are invisible to others for so many seconds. */
  async get(
    queue: string,
    options: CallOptions & { count?: number; visibilitySeconds?: number } = {},
  ): Promise<Message[]> {
    const query = { numofmessages: options.count, visibilitytimeout: options.visibilitySeconds };
    return messagesOf(await this.#send({ path: `/${queue}/messages`, query, signal: options.signal }));
  }

  /** Adds a message. `ttlSeconds` -1: it never expires. */
  async put(
    queue: string,
    text: string,
    options: CallOptions & { visibilitySeconds?: number; ttlSeconds?: number } = {},
  ): Promise<Message> {
    const response = await this.#send({
      method: 'POST',
      path: `/${queue}/messages`,
      query: { visibilitytimeout: options.visibilitySeconds, messagettl: options.ttlSeconds },
      headers: { 'content-type': 'application/xml' },
      body: messageXml(text),
      signal: options.signal,
    });
    const [message] = await messagesOf(response);
    if (!message) throw new Error('The answer has no message.');
    return { ...message, text };
  }

  /** Changes when a message becomes visible, and its text if one is given. Returns the new receipt. */
  async update(
    queue: string,
    message: { id: string; popReceipt: string },
    options: CallOptions & { visibilitySeconds: number; text?: string },
  ): Promise<Receipt> {
    const { text } = options;
    const response = await this.#send({
      method: 'PUT',
      path: messagePath(queue, message.id),
      query: { popreceipt: message.popReceipt, visibilitytimeout: options.visibilitySeconds },
      ...(text === undefined ? {} : { headers: { 'content-type': 'application/xml' }, body: messageXml(text) }),
      signal: options.signal,
    });
    return {
      id: message.id,
      popReceipt: response.headers.get('x-ms-popreceipt') ?? '',
      nextVisible: response.headers.get('x-ms-time-next-visible') ?? '',
    };
  }

  async deleteMessage(
    queue: string,
    message: { id: string; popReceipt: string },
    options: CallOptions = {},
  ): Promise<void> {
    await this.#send({
      method: 'DELETE',
      path: messagePath(queue, message.id),
      query: { popreceipt: message.popReceipt },
      signal: options.signal,
    });
  }

  /** Deletes all messages. */
  async clear(queue: string, options: CallOptions = {}): Promise<void> {
    await this.#send({ method: 'DELETE', path: `/${queue}/messages`, signal: options.signal });
  }

  /** The stored access policies. Needs the key. */
  async policies(queue: string, options: CallOptions = {}): Promise<StoredPolicy[]> {
    const query = { comp: 'acl' };
    const response = await this.#send({ path: `/${queue}`, query, auth: 'key', signal: options.signal });
    return parsePolicies(await response.text());
  }

  async setPolicies(queue: string, policies: readonly StoredPolicy[], options: CallOptions = {}): Promise<void> {
    await this.#send({
      method: 'PUT',
      path: `/${queue}`,
      query: { comp: 'acl' },
      headers: { 'content-type': 'application/xml' },
      body: policiesToXml(policies),
      auth: 'key',
      signal: options.signal,
    });
  }

  #send(options: RequestOptions): Promise<Response> {
    return this.transport.send('queue', options);
  }
}

function messagePath(queue: string, id: string): string {
  return `/${queue}/messages/${encodeURIComponent(id)}`;
}

function messageXml(text: string): string {
  return document(element('QueueMessage', [element('MessageText', text)]));
}

async function messagesOf(response: Response): Promise<Message[]> {
  return parseMessages(await response.text());
}

export function parseMessages(xml: string): Message[] {
  return children(parseXml(xml), 'QueueMessage').map((message) => {
    const text = (name: string) => childText(message, name);
    const popReceipt = text('PopReceipt');
    const nextVisible = text('TimeNextVisible');
    return {
      id: text('MessageId') ?? '',
      text: text('MessageText') ?? '',
      inserted: text('InsertionTime') ?? '',
      expires: text('ExpirationTime') ?? '',
      dequeueCount: Number(text('DequeueCount') ?? 0),
      ...(popReceipt === undefined ? {} : { popReceipt }),
      ...(nextVisible === undefined ? {} : { nextVisible }),
    };
  });
}
