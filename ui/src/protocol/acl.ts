/** Stored access policies of tables, queues and containers. */

import { child, children, childText, document, element, parseXml } from './xml';

export interface StoredPolicy {
  /** At most 64 characters. */
  readonly id: string;
  /** `2026-11-17T08:00:00.0000000Z`. */
  readonly start?: string;
  readonly expiry?: string;
  readonly permissions?: string;
}

/** A table, queue or container has at most so many. */
export const POLICIES_MAX = 5;

export function parsePolicies(xml: string): StoredPolicy[] {
  if (!xml.replace(/^\uFEFF/, '').trim()) return [];
  return children(parseXml(xml), 'SignedIdentifier').map((identifier) => {
    const policy = child(identifier, 'AccessPolicy');
    const start = childText(policy, 'Start');
    const expiry = childText(policy, 'Expiry');
    const permissions = childText(policy, 'Permission');
    return {
      id: childText(identifier, 'Id') ?? '',
      ...(start ? { start } : {}),
      ...(expiry ? { expiry } : {}),
      ...(permissions ? { permissions } : {}),
    };
  });
}

export function policiesToXml(policies: readonly StoredPolicy[]): string {
  const identifiers = policies.map(({ id, start, expiry, permissions }) =>
    element('SignedIdentifier', [
      element('Id', id),
      element('AccessPolicy', [
        element('Start', start || undefined),
        element('Expiry', expiry || undefined),
        element('Permission', permissions || undefined),
      ]),
    ]),
  );
  return document(element('SignedIdentifiers', identifiers));
}
