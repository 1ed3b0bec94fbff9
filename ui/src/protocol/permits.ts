/** What a credential allows, so that pages can disable what the server would refuse and say why. */

import type { Credential, SasCredential, Service } from './credentials';

/** What pages offer to do. */
export type Action =
  | 'tables.list'
  | 'tables.create'
  | 'tables.delete'
  | 'tables.acl'
  | 'entities.read'
  | 'entities.insert'
  | 'entities.update'
  | 'entities.upsert'
  | 'entities.delete'
  | 'queues.list'
  | 'queues.create'
  | 'queues.delete'
  | 'queues.acl'
  | 'queues.metadata.read'
  | 'queues.metadata.write'
  | 'messages.peek'
  | 'messages.put'
  | 'messages.get'
  | 'messages.update'
  | 'messages.delete'
  | 'messages.clear'
  | 'containers.list'
  | 'containers.create'
  | 'containers.delete'
  | 'containers.acl'
  | 'containers.metadata.write'
  | 'blobs.list'
  | 'blobs.read'
  | 'blobs.write'
  | 'blobs.delete'
  | 'blobs.tags'
  | 'properties.read'
  | 'properties.write'
  | 'insights.read'
  | 'insights.delete'
  | 'advice.dismiss'
  | 'requests.read'
  | 'sas.make';

interface Need {
  readonly service: Service;
  /** The resource type of an account's signature. */
  readonly type: 's' | 'c' | 'o';
  /** Letters of an account's signature: each group needs one of its letters. */
  readonly account: readonly string[];
  /** Letters of a signature for one table, queue, container or blob; without them such a signature cannot do it. */
  readonly scoped?: readonly string[];
}

/** Why a credential does not allow an action; `undefined` if it does, as far as the page can know. */
export function refusal(credential: Credential, action: Action, service?: Service): string | undefined {
  if (credential.kind === 'key') return undefined;
  const need = NEEDS[action];
  if (need === 'key') return 'This needs the account key: a shared access signature cannot do it.';
  return refusalOfSas(credential, need, service ?? need.service);
}

function refusalOfSas({ parameters, scope }: SasCredential, need: Need, service: Service): string | undefined {
  const has = (groups: readonly string[]) => {
    const permissions = parameters.get('sp');
    // A stored access policy may have the permissions; only the server knows.
    if (permissions === undefined) return parameters.has('si');
    return groups.every((group) => [...group].some((letter) => permissions.includes(letter)));
  };
  const letters = (groups: readonly string[]) => groups.map((group) => [...group].join(' or ')).join(' and ');
  if (scope) {
    if (scope.service !== service || !need.scoped) return `This signature is only for ${scopeName(scope)}.`;
    return has(need.scoped) ? undefined : `This signature lacks a permission (sp with ${letters(need.scoped)}).`;
  }
  if (!parameters.get('ss')?.includes(SERVICE_LETTERS[service])) {
    return `This signature is not for the ${service} service (ss without ${SERVICE_LETTERS[service]}).`;
  }
  if (!parameters.get('srt')?.includes(need.type)) {
    return `This signature is not for this type of resource (srt without ${need.type}).`;
  }
  return has(need.account) ? undefined : `This signature lacks a permission (sp with ${letters(need.account)}).`;
}

function scopeName({ service, name, blob }: NonNullable<SasCredential['scope']>): string {
  if (blob !== undefined) return `the blob ${name}/${blob}`;
  return `the ${service === 'blob' ? 'container' : service} ${name}`;
}

const SERVICE_LETTERS: Record<Service, string> = { table: 't', queue: 'q', blob: 'b' };

function need(service: Service, type: Need['type'], account: string, scoped?: string): Need {
  const groups = (text: string) => text.split(' ');
  return { service, type, account: groups(account), ...(scoped ? { scoped: groups(scoped) } : {}) };
}

const NEEDS: Record<Action, Need | 'key'> = {
  'tables.list': need('table', 'c', 'l'),
  'tables.create': need('table', 'c', 'cw'),
  'tables.delete': need('table', 'c', 'd'),
  'tables.acl': 'key',
  'entities.read': need('table', 'o', 'r', 'r'),
  'entities.insert': need('table', 'o', 'a', 'a'),
  'entities.update': need('table', 'o', 'u', 'u'),
  'entities.upsert': need('table', 'o', 'a u', 'a u'),
  'entities.delete': need('table', 'o', 'd', 'd'),
  'queues.list': need('queue', 's', 'l'),
  'queues.create': need('queue', 'c', 'cw'),
  'queues.delete': need('queue', 'c', 'd'),
  'queues.acl': 'key',
  'queues.metadata.read': need('queue', 'c', 'r', 'r'),
  'queues.metadata.write': need('queue', 'c', 'w'),
  'messages.peek': need('queue', 'o', 'r', 'r'),
  'messages.put': need('queue', 'o', 'a', 'a'),
  'messages.get': need('queue', 'o', 'p', 'p'),
  'messages.update': need('queue', 'o', 'u', 'u'),
  'messages.delete': need('queue', 'o', 'p', 'p'),
  'messages.clear': need('queue', 'o', 'd'),
  'containers.list': need('blob', 's', 'l'),
  'containers.create': need('blob', 'c', 'cw'),
  'containers.delete': need('blob', 'c', 'd'),
  'containers.acl': 'key',
  'containers.metadata.write': need('blob', 'c', 'w'),
  'blobs.list': need('blob', 'c', 'l', 'l'),
  'blobs.read': need('blob', 'o', 'r', 'r'),
  'blobs.write': need('blob', 'o', 'wc', 'wc'),
  'blobs.delete': need('blob', 'o', 'd', 'd'),
  'blobs.tags': need('blob', 'o', 't', 't'),
  'properties.read': need('table', 's', 'r'),
  'properties.write': need('table', 's', 'w'),
  'insights.read': need('table', 'o', 'r l'),
  'insights.delete': need('table', 'o', 'd'),
  'advice.dismiss': need('table', 'o', 'w'),
  'requests.read': need('table', 'o', 'r l'),
  'sas.make': 'key',
};
