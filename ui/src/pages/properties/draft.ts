/** The properties of a service while they are edited: texts and flags, what is wrong with them, and what changed. */

import { CORS_RULES_MAX, type CorsRule, type MetricsSettings, type ServiceProperties } from '../../protocol';

export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'MERGE', 'OPTIONS'] as const;

export interface RuleDraft {
  readonly key: number;
  origins: string;
  methods: string[];
  allowedHeaders: string;
  exposedHeaders: string;
  maxAgeSeconds: number;
}

export interface MetricsDraft {
  enabled: boolean;
  includeApis: boolean;
  /** 0: kept for good. */
  days: number;
}

export interface Draft {
  logging: { read: boolean; write: boolean; delete: boolean; days: number };
  hour: MetricsDraft;
  minute: MetricsDraft;
  cors: RuleDraft[];
  defaultVersion: string;
}

let last = 0;

export function newRule(rule?: CorsRule): RuleDraft {
  return {
    key: ++last,
    origins: rule?.origins ?? '',
    methods: rule
      ? rule.methods
          .split(',')
          .map((method) => method.trim())
          .filter(Boolean)
      : ['GET'],
    allowedHeaders: rule?.allowedHeaders ?? '*',
    exposedHeaders: rule?.exposedHeaders ?? '*',
    maxAgeSeconds: rule?.maxAgeSeconds ?? 3600,
  };
}

export function draftOf(properties: ServiceProperties): Draft {
  const { logging } = properties;
  return {
    logging: {
      read: logging?.read ?? false,
      write: logging?.write ?? false,
      delete: logging?.delete ?? false,
      days: logging?.retentionDays ?? 0,
    },
    hour: metricsDraft(properties.hourMetrics),
    minute: metricsDraft(properties.minuteMetrics),
    cors: (properties.cors ?? []).map(newRule),
    defaultVersion: properties.defaultVersion ?? '',
  };
}

function metricsDraft(metrics: MetricsSettings | undefined): MetricsDraft {
  const { enabled = false, includeApis = false, retentionDays = 0 } = metrics ?? {};
  return { enabled, includeApis, days: retentionDays };
}

/** What is wrong, by the field that it is about; empty if nothing is. */
export function problemsOf(draft: Draft): Map<string, string> {
  const problems = new Map<string, string>();
  const days = (name: string, value: number) => {
    if (!Number.isInteger(value) || value < 0 || value > 365)
      problems.set(name, 'Days are 1 to 365, or 0 to keep them for good.');
  };
  days('logging.days', draft.logging.days);
  days('hour.days', draft.hour.days);
  days('minute.days', draft.minute.days);
  if (draft.defaultVersion && !/^\d{4}-\d{2}-\d{2}$/.test(draft.defaultVersion)) {
    problems.set('defaultVersion', 'A version is a date such as 2021-12-02.');
  }
  if (draft.cors.length > CORS_RULES_MAX) problems.set('cors', `There can be ${CORS_RULES_MAX} rules.`);
  let characters = 0;
  for (const rule of draft.cors) {
    const problem = ruleProblem(rule);
    if (problem) problems.set(`cors.${rule.key}`, problem);
    characters += [rule.origins, rule.methods.join(), rule.allowedHeaders, rule.exposedHeaders].join('').length;
  }
  if (characters > CORS_CHARACTERS_MAX) problems.set('cors', 'All rules together have at most 2,048 characters.');
  return problems;
}

function ruleProblem(rule: RuleDraft): string | undefined {
  const origins = parts(rule.origins);
  if (origins.length === 0) return 'Enter at least one origin, or * for all.';
  const wrong = origins.find(
    (origin) => origin !== '*' && !/^(\*\.[^/\s*]+|[a-z][a-z0-9+.-]*:\/\/[^/\s]+)$/i.test(origin),
  );
  if (wrong) return `“${wrong}” is not an origin: write https://www.example.com without a path, or *.`;
  if (rule.methods.length === 0) return 'Choose at least one method.';
  if (!Number.isInteger(rule.maxAgeSeconds) || rule.maxAgeSeconds < 0 || rule.maxAgeSeconds > 2_147_483_647) {
    return 'The time is a whole number of seconds, 0 or more.';
  }
  return undefined;
}

/** What differs from the stored properties: only that is sent. */
export function changes(stored: ServiceProperties, draft: Draft): ServiceProperties {
  const before = draftOf(stored);
  const differs = (part: keyof Draft) => comparable(before[part]) !== comparable(draft[part]);
  const { logging } = draft;
  return {
    ...(differs('logging')
      ? {
          logging: {
            version: stored.logging?.version ?? '1.0',
            read: logging.read,
            write: logging.write,
            delete: logging.delete,
            retentionDays: logging.days || undefined,
          },
        }
      : {}),
    ...(differs('hour') ? { hourMetrics: metricsOf(stored.hourMetrics, draft.hour) } : {}),
    ...(differs('minute') ? { minuteMetrics: metricsOf(stored.minuteMetrics, draft.minute) } : {}),
    ...(differs('cors') ? { cors: draft.cors.map(ruleOf) } : {}),
    ...(differs('defaultVersion') ? { defaultVersion: draft.defaultVersion } : {}),
  };
}

function metricsOf(stored: MetricsSettings | undefined, draft: MetricsDraft): MetricsSettings {
  return {
    version: stored?.version ?? '1.0',
    enabled: draft.enabled,
    includeApis: draft.enabled && draft.includeApis,
    retentionDays: draft.days || undefined,
  };
}

function ruleOf(rule: RuleDraft): CorsRule {
  return {
    origins: parts(rule.origins).join(','),
    methods: rule.methods.join(','),
    allowedHeaders: parts(rule.allowedHeaders).join(','),
    exposedHeaders: parts(rule.exposedHeaders).join(','),
    maxAgeSeconds: rule.maxAgeSeconds,
  };
}

function comparable(part: Draft[keyof Draft]): string {
  return JSON.stringify(Array.isArray(part) ? part.map(ruleOf) : part);
}

function parts(text: string): string[] {
  return text
    .split(/[,\s]+/)
    .map((part) => part.trim())
    .filter(Boolean);
}

const CORS_CHARACTERS_MAX = 2048;
