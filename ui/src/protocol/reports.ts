/** The JSON of the admin endpoint (`crates/advisor/src/report.rs`, `finding.rs`; docs/insights.md). */

export interface InsightsReport {
  readonly account: string;
  readonly since: string;
  readonly until: string;
  readonly resolution: 'minute' | 'hour';
  /** The busiest tables first. */
  readonly tables: readonly TableReport[];
  readonly otherRequests: number;
}

export interface TableReport {
  readonly table: string;
  readonly requests: number;
  readonly missedMax: number;
  readonly operations: readonly OperationReport[];
  readonly shapes: readonly ShapeReport[];
  readonly otherShapes: CountsReport;
  /** The busiest partitions first. */
  readonly partitions: readonly PartitionReport[];
  /** An estimate. */
  readonly partitionsSeen: number;
  /** In key order; each ends where the next one begins. */
  readonly ranges: readonly RangeReport[];
  readonly insertOrder: OrderReport;
  readonly entities: {
    readonly bytesMax: number;
    readonly propertiesMax: number;
    readonly bySize: readonly { readonly bytesBelow: number; readonly entities: number }[];
  };
  readonly transactionWrites: number;
  readonly followed: { readonly gets: number; readonly inserts: number; readonly deletes: number };
  /** Only in the report of a single table: reads and writes of each range, by slot. */
  readonly heat?: readonly {
    readonly time: string;
    readonly reads: readonly number[];
    readonly writes: readonly number[];
  }[];
}

export interface OperationReport {
  readonly operation: 'get' | 'query' | 'insert' | 'replace' | 'merge' | 'delete' | 'transaction';
  readonly requests: number;
  readonly done: number;
  readonly missing: number;
  readonly exists: number;
  readonly changed: number;
  readonly busy: number;
  readonly refused: number;
  readonly failed: number;
  readonly p50Micros: number;
  readonly p99Micros: number;
}

export interface CountsReport {
  readonly queries: number;
  readonly rowsRead: number;
  readonly rowsReturned: number;
  readonly wasteful: number;
}

export interface ShapeReport extends CountsReport {
  /** A filter without its literals; empty for queries without one. */
  readonly shape: string;
  readonly plan: string;
  readonly missedMax: number;
  readonly p50Micros: number;
  readonly p99Micros: number;
}

export interface PartitionReport {
  /** Perhaps cut. */
  readonly partition: string;
  readonly reads: number;
  readonly writes: number;
  readonly missedMax: number;
  readonly conflicts: number;
  readonly throttled: number;
  /** An estimate. */
  readonly rowsSeen: number;
  readonly insertOrder: OrderReport;
}

export interface RangeReport {
  readonly partition: string;
  readonly row: string;
  readonly reads: number;
  readonly writes: number;
}

export interface OrderReport {
  readonly compared: number;
  readonly above: number;
  readonly below: number;
}

export interface Advice {
  readonly account: string;
  readonly since: string;
  readonly until: string;
  readonly findings: readonly Finding[];
  readonly leftOut: number;
  /** What was dismissed; a server without dismissals does not have it. */
  readonly dismissals?: readonly Dismissal[];
}

/** A kind of finding that is known and accepted. */
export interface Dismissal {
  readonly finding: string;
  /** All tables if it has none. */
  readonly table?: string;
  readonly reason?: string;
  readonly time?: string;
}

export interface Finding {
  /** The kind, such as `table-scan`. */
  readonly id: string;
  readonly severity: 'notice' | 'warning';
  readonly table: string;
  /** The filter or partition that it is about. */
  readonly subject?: string;
  readonly summary: string;
  readonly evidence: readonly { readonly name: string; readonly value: number }[];
  readonly advice: string;
  readonly cost: { readonly of: string; readonly now: Work; readonly after: Work };
  readonly pattern: { readonly number: string; readonly name: string; readonly link: string };
  readonly code: { readonly rust: string; readonly python: string };
  readonly dismissed?: boolean;
}

export interface Work {
  readonly requests: number;
  readonly rows: number;
}

export type DesignRequest =
  | { readonly description: unknown }
  | { readonly toml: string }
  | { readonly sample: { readonly format: 'csv' | 'jsonl' | 'json'; readonly text: string }; readonly toml?: string }
  | { readonly example: string };

export interface DesignExample {
  readonly name: string;
  readonly title: string;
}

/** What a query costs, as predicted. */
export interface DesignAccess {
  /** `point`, `points`, `range`, `ranges`, `blobs`, `partition-scan` or `table-scan`. */
  readonly kind: string;
  readonly seeks: number;
  readonly rows: number;
  readonly requests: number;
  readonly returned: number;
  readonly isSortedByClient: boolean;
}

export interface Design {
  readonly bestAt: readonly string[];
  readonly patterns: readonly string[];
  /** The first is the entity itself. */
  readonly structures: readonly {
    readonly table: string;
    readonly is: string;
    readonly partitionKey: string;
    readonly rowKey: string;
    readonly examplePartitionKey: string;
    readonly exampleRowKey: string;
    /** The properties that it has, if not all. */
    readonly stores: readonly string[] | null;
  }[];
  readonly queries: readonly (DesignAccess & { readonly name: string; readonly isWasteful: boolean })[];
  readonly writes: readonly {
    readonly name: string;
    readonly requests: number;
    readonly rows: number;
    readonly consistency: 'single' | 'transaction' | 'eventual';
    readonly isTransactionPossible: boolean | null;
  }[];
  readonly partitions: number;
  readonly rowsPerPartition: number;
  readonly bytes: number;
  readonly partitionEntitiesPerSecond: number;
  readonly requestsPerSecond: number;
  readonly cost: number;
  readonly reasons: readonly string[];
  readonly warnings: readonly string[];
}

/** The answer to a description: designs, the one with the least cost first. */
export interface Proposal {
  readonly designs: readonly Design[];
  /** The description in TOML, with what a sample added. */
  readonly description?: string;
}

export interface DesignTrial {
  /** Entities in the service's JSON; tables are ends of names. */
  readonly rows: readonly { readonly table: string; readonly entity: Readonly<Record<string, unknown>> }[];
  readonly queries: readonly {
    readonly name: string;
    readonly predicted: DesignAccess;
    readonly requests: readonly { readonly table: string; readonly filter: string; readonly top?: number }[];
  }[];
  readonly notTried: readonly { readonly name: string; readonly reason: string }[];
}

/** A line of `/requests`: a request as in the access log, or how many were left out because the reader was too slow. */
export type LiveRequest = RequestLine | { readonly lost: number };

export interface RequestLine {
  readonly time: string;
  readonly client: string;
  readonly client_port?: number;
  readonly service: string;
  readonly operation: string;
  readonly method: string;
  readonly resource: string;
  readonly auth: string;
  readonly status: number;
  readonly code: string | null;
  readonly bytes_in: number;
  readonly bytes_out: number;
  readonly request_id: string;
  readonly client_request_id?: string | null;
  readonly user_agent?: string | null;
  readonly complete?: boolean;
  readonly ms: number;
  readonly lost?: undefined;
}
