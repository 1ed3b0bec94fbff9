/** Service properties: logging, metrics, CORS, and what only the Blob service has. */

import type { Service } from './credentials';
import type { CallOptions, Transport } from './transport';
import { child, children, childText, document, element, parseXml } from './xml';

/** Days that data is kept; `undefined` keeps it for good. */
export type RetentionDays = number | undefined;

export interface Logging {
  readonly version: string;
  readonly read: boolean;
  readonly write: boolean;
  readonly delete: boolean;
  readonly retentionDays: RetentionDays;
}

export interface MetricsSettings {
  readonly version: string;
  readonly enabled: boolean;
  /** Counts each operation, besides the sums. Only if enabled. */
  readonly includeApis: boolean;
  readonly retentionDays: RetentionDays;
}

export interface CorsRule {
  readonly origins: string;
  readonly methods: string;
  readonly allowedHeaders: string;
  readonly exposedHeaders: string;
  readonly maxAgeSeconds: number;
}

export interface ServiceProperties {
  readonly logging?: Logging;
  readonly hourMetrics?: MetricsSettings;
  readonly minuteMetrics?: MetricsSettings;
  readonly cors?: readonly CorsRule[];
  /** The rest is of the Blob service. */
  readonly defaultVersion?: string;
  readonly deleteRetentionDays?: number;
  readonly staticWebsite?: { readonly enabled: boolean; readonly index?: string; readonly error404?: string };
}

export const CORS_RULES_MAX = 5;

export async function getProperties(
  transport: Transport,
  service: Service,
  options: CallOptions = {},
): Promise<ServiceProperties> {
  const response = await transport.send(service, { path: '/', query: QUERY, signal: options.signal });
  return parseProperties(await response.text());
}

/** Changes what is given; members that are missing stay as they are. An empty `cors` removes all rules. */
export async function setProperties(
  transport: Transport,
  service: Service,
  properties: ServiceProperties,
  options: CallOptions = {},
): Promise<void> {
  await transport.send(service, {
    method: 'PUT',
    path: '/',
    query: QUERY,
    headers: { 'content-type': 'application/xml' },
    body: propertiesToXml(properties),
    signal: options.signal,
  });
}

export function parseProperties(xml: string): ServiceProperties {
  const root = parseXml(xml);
  const logging = child(root, 'Logging');
  const hour = child(root, 'HourMetrics');
  const minute = child(root, 'MinuteMetrics');
  const cors = child(root, 'Cors');
  const retention = child(root, 'DeleteRetentionPolicy');
  const website = child(root, 'StaticWebsite');
  const defaultVersion = childText(root, 'DefaultServiceVersion');
  const deleteDays = retentionDays(retention);
  const [index, error404] = [childText(website, 'IndexDocument'), childText(website, 'ErrorDocument404Path')];
  return {
    ...(logging ? { logging: loggingOf(logging) } : {}),
    ...(hour ? { hourMetrics: metricsOf(hour) } : {}),
    ...(minute ? { minuteMetrics: metricsOf(minute) } : {}),
    ...(cors ? { cors: children(cors, 'CorsRule').map(ruleOf) } : {}),
    ...(defaultVersion ? { defaultVersion } : {}),
    ...(deleteDays === undefined ? {} : { deleteRetentionDays: deleteDays }),
    ...(website
      ? {
          staticWebsite: {
            enabled: flag(website, 'Enabled'),
            ...(index ? { index } : {}),
            ...(error404 ? { error404 } : {}),
          },
        }
      : {}),
  };
}

export function propertiesToXml(properties: ServiceProperties): string {
  const { logging, hourMetrics, minuteMetrics, cors, staticWebsite } = properties;
  const parts = [
    logging &&
      element('Logging', [
        element('Version', logging.version),
        element('Delete', String(logging.delete)),
        element('Read', String(logging.read)),
        element('Write', String(logging.write)),
        retentionXml('RetentionPolicy', logging.retentionDays),
      ]),
    hourMetrics && metricsXml('HourMetrics', hourMetrics),
    minuteMetrics && metricsXml('MinuteMetrics', minuteMetrics),
    cors && element('Cors', cors.map(ruleXml)),
    element('DefaultServiceVersion', properties.defaultVersion),
    'deleteRetentionDays' in properties && retentionXml('DeleteRetentionPolicy', properties.deleteRetentionDays),
    staticWebsite &&
      element('StaticWebsite', [
        element('Enabled', String(staticWebsite.enabled)),
        element('IndexDocument', staticWebsite.index || undefined),
        element('ErrorDocument404Path', staticWebsite.error404 || undefined),
      ]),
  ];
  return document(
    element(
      'StorageServiceProperties',
      parts.filter((part) => typeof part === 'string'),
    ),
  );
}

function loggingOf(logging: Element): Logging {
  return {
    version: childText(logging, 'Version') ?? '1.0',
    read: flag(logging, 'Read'),
    write: flag(logging, 'Write'),
    delete: flag(logging, 'Delete'),
    retentionDays: retentionDays(child(logging, 'RetentionPolicy')),
  };
}

function metricsOf(metrics: Element): MetricsSettings {
  return {
    version: childText(metrics, 'Version') ?? '1.0',
    enabled: flag(metrics, 'Enabled'),
    includeApis: flag(metrics, 'IncludeAPIs'),
    retentionDays: retentionDays(child(metrics, 'RetentionPolicy')),
  };
}

function metricsXml(name: string, metrics: MetricsSettings): string {
  return element(name, [
    element('Version', metrics.version),
    element('Enabled', String(metrics.enabled)),
    element('IncludeAPIs', metrics.enabled ? String(metrics.includeApis) : undefined),
    retentionXml('RetentionPolicy', metrics.retentionDays),
  ]);
}

function ruleOf(rule: Element): CorsRule {
  const text = (name: string) => childText(rule, name) ?? '';
  return {
    origins: text('AllowedOrigins'),
    methods: text('AllowedMethods'),
    allowedHeaders: text('AllowedHeaders'),
    exposedHeaders: text('ExposedHeaders'),
    maxAgeSeconds: Number(text('MaxAgeInSeconds')),
  };
}

function ruleXml(rule: CorsRule): string {
  return element('CorsRule', [
    element('AllowedOrigins', rule.origins),
    element('AllowedMethods', rule.methods),
    element('MaxAgeInSeconds', String(rule.maxAgeSeconds)),
    element('ExposedHeaders', rule.exposedHeaders),
    element('AllowedHeaders', rule.allowedHeaders),
  ]);
}

function retentionDays(policy: Element | undefined): RetentionDays {
  return policy && flag(policy, 'Enabled') ? Number(childText(policy, 'Days')) : undefined;
}

function retentionXml(name: string, days: RetentionDays): string {
  return element(name, [
    element('Enabled', String(days !== undefined)),
    element('Days', days === undefined ? undefined : String(days)),
  ]);
}

function flag(parent: Element, name: string): boolean {
  return childText(parent, name) === 'true';
}

const QUERY = { restype: 'service', comp: 'properties' };
