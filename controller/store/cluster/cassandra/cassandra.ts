import cassandra from "cassandra-driver";
import { AppError, errorText } from "../../../../common/errors.ts";
import {
  CLUSTER_ATTEMPT_DEADLINE_MS,
  CLUSTER_CONNECT_DEADLINE_MS,
  CLUSTER_HANDSHAKE_DEADLINE_MS,
  CLUSTER_REQUESTS_IN_FLIGHT_MAX,
  CLUSTER_SCHEMA_DEADLINE_MS,
  CLUSTER_SILENT_REQUESTS_MAX,
} from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import { CallDeadline } from "../../calls/call-deadline.ts";
import type { StoreAccess } from "../../access.ts";
import { schemaAgreed, schemaDifference, type SchemaNode } from "./agreement.ts";
import { keepControlConnection } from "./control-connection.ts";
import { Deadline } from "../deadline.ts";
import { correctListDecoding } from "./list-decoding.ts";
import { Places } from "../../calls/places.ts";
import {
  reasonOf,
  faultOf,
  tellsGone,
  answerError,
  goneError,
  NoTimeLeft,
  noAnswerInTime,
  noPlaceInTime,
} from "./faults.ts";

const { consistencies, responseErrorCodes } = cassandra.types;

/** A value in the driver's form: longs as bigint, maps as Map, sets as arrays. `undefined` keeps a column unchanged. */
export type CqlValue =
  | string
  | number
  | bigint
  | boolean
  | Uint8Array
  | null
  | undefined
  | readonly string[]
  | ReadonlyMap<string, Uint8Array>;

export interface Statement {
  readonly query: string;
  readonly params: readonly CqlValue[];
}

export interface PagePlace {
  readonly size: number;
  readonly state?: string | undefined;
}

export interface PageOfRows {
  readonly rows: readonly cassandra.types.Row[];
  /** The driver's state of the next page; absent at the end. */
  readonly state?: string;
}

export interface CassandraOptions {
  /** Each is `host:port`. */
  readonly contactPoints: readonly string[];
  readonly datacenter: string;
  readonly runtime: Runtime;
  /** Absent: plain text and no account. */
  readonly access?: StoreAccess;
}

/**
 * Cassandra through the driver, with our own deadlines and retries. Every statement is prepared. Every write states its
 * write time, so repeating it changes nothing.
 */
export class Cassandra {
  readonly #client: cassandra.Client;
  readonly #runtime: Runtime;
  readonly #places = new Places(CLUSTER_REQUESTS_IN_FLIGHT_MAX);
  readonly #left = (): void => this.#places.leave();
  #lastTimeUs = 0;

  private constructor(client: cassandra.Client, runtime: Runtime) {
    this.#client = client;
    this.#runtime = runtime;
  }

  /** Retries until a node answers or the deadline passes. */
  static async connect(options: CassandraOptions): Promise<Cassandra> {
    const deadline = new Deadline(options.runtime.clock, options.runtime.random, CLUSTER_CONNECT_DEADLINE_MS);
    correctListDecoding();
    for (;;) {
      const client = newClient(options);
      client.on("log", (level: string, part: string, message: string) =>
        options.runtime.log.debug({ level, part }, `Cassandra driver: ${message}`),
      );
      keepControlConnection(client, (error) =>
        options.runtime.log.warn({ reason: errorText(error) }, "the driver's control connection was overtaken"),
      );
      try {
        await client.connect();
        return new Cassandra(client, options.runtime);
      } catch (error) {
        await client.shutdown().catch(() => undefined);
        if (!(await deadline.pause()))
          throw new AppError("unavailable", `Cassandra does not answer: ${reasonOf(error)}`);
      }
    }
  }

  get runtime(): Runtime {
    return this.#runtime;
  }

  get hosts(): cassandra.HostMap {
    return this.#client.hosts;
  }

  /** Write time for data without a time of its own: the current time, but later than all results in this process. */
  nextTimeUs(): number {
    this.#lastTimeUs = Math.max(this.#lastTimeUs + 1, this.#runtime.clock.nowMs() * 1_000);
    return this.#lastTimeUs;
  }

  deadline(): Deadline {
    return new Deadline(this.#runtime.clock, this.#runtime.random);
  }

  async read(statement: Statement, deadline: Deadline): Promise<readonly cassandra.types.Row[]> {
    const way = { kind: "read", query: statement.query, deadline } as const;
    const result = await this.#repeat(way, (readTimeout) => this.#execute(statement, { readTimeout, autoPage: false }));
    return result.rows ?? [];
  }

  /** One page, from the state of an earlier one. */
  async page(statement: Statement, page: PagePlace, deadline: Deadline): Promise<PageOfRows> {
    const way = { kind: "read", query: statement.query, deadline } as const;
    return this.#repeat(way, (readTimeout) => this.#page(statement, page, readTimeout));
  }

  /** As `page`; `undefined` if a node aborts the read, which it does after 100,000 tombstones. */
  async tryPage(statement: Statement, page: PagePlace, deadline: Deadline): Promise<PageOfRows | undefined> {
    const way = { kind: "read", query: statement.query, deadline } as const;
    return this.#repeat(way, (readTimeout) => this.#page(statement, page, readTimeout).catch(undefinedIfGivenUp));
  }

  /**
   * Writes statements of one partition atomically. Do not use a logged batch over several partitions: its coordinator
   * stores the batch on two other nodes and waits for both. On a ring of three such a batch fails as long as a lost
   * node is not yet marked as down.
   */
  async write(statements: readonly Statement[], deadline: Deadline): Promise<void> {
    const queries = statements.map(({ query, params }) => ({ query, params: params.map(driverValue) }));
    const [first, ...others] = queries;
    if (first === undefined) return;
    await this.#repeat({ kind: "write", query: first.query, deadline }, (readTimeout) =>
      others.length === 0
        ? this.#execute(first, { readTimeout })
        : this.#client.batch(queries, { prepare: true, logged: false, isIdempotent: true, readTimeout }),
    );
  }

  /** Changes definitions. Every statement must be repeatable (`IF NOT EXISTS`). Waits until all nodes agree. */
  async define(query: string): Promise<void> {
    const { clock, random } = this.#runtime;
    // The deadline of the call from outside does not apply, so that a started definition is completed.
    const deadline = CallDeadline.outside(() => new Deadline(clock, random, CLUSTER_SCHEMA_DEADLINE_MS));
    await this.#repeat({ kind: "write", query, deadline }, () =>
      this.#client.execute(query, [], { readTimeout: deadline.leftMs(), isIdempotent: true }),
    );
    await schemaAgreed(() => this.#nodesUp(), deadline, this.#runtime.log);
  }

  /**
   * Drops the tables one by one, then the keyspace. If a node drops a whole keyspace at once, a late write, such as a
   * hint, may meet a table that is already dropped (`Unknown CF`, Cassandra 5.0.8). Then the drop fails halfway, and
   * the node accepts no definition until it is restarted. The ring's test of indexes under change fails without this.
   */
  async dropKeyspace(keyspace: string): Promise<void> {
    const query = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?";
    const rows = await this.read({ query, params: [keyspace] }, this.deadline());
    for (const row of rows) await this.define(`DROP TABLE IF EXISTS ${keyspace}.${String(row.table_name)}`);
    await this.define(`DROP KEYSPACE IF EXISTS ${keyspace}`);
  }

  #nodesUp(): SchemaNode[] {
    const up = this.#client.hosts.values().filter((host) => host.isUp());
    return up.map((host) => ({ address: host.address, version: () => this.#schemaVersion(host) }));
  }

  async #schemaVersion(host: cassandra.Host): Promise<string> {
    const query = "SELECT schema_version FROM system.local";
    const { rows } = await this.#client.execute(query, [], { host, readTimeout: CLUSTER_ATTEMPT_DEADLINE_MS });
    return String(rows[0]?.schema_version);
  }

  async close(): Promise<void> {
    await this.#client.shutdown();
  }

  async #page(statement: Statement, { size, state }: PagePlace, readTimeout: number): Promise<PageOfRows> {
    const result = await this.#execute(statement, { fetchSize: size, pageState: state, readTimeout });
    return { rows: result.rows ?? [], ...(result.pageState ? { state: result.pageState } : {}) };
  }

  /** Bytes in `params` must be Buffers. Only writes have bytes; `write` converts them. */
  #execute(
    { query, params }: { readonly query: string; readonly params: readonly unknown[] },
    options: cassandra.QueryOptions,
  ): Promise<cassandra.types.ResultSet> {
    return this.#client.execute(query, params, { prepare: true, isIdempotent: true, ...options });
  }

  async #repeat<T>({ kind, query, deadline }: Repeated, attempt: (readTimeoutMs: number) => Promise<T>): Promise<T> {
    const silence = deadline.silence("Cassandra");
    let maybeSent = false;
    let nodesAgree = false;
    try {
      for (;;) {
        silence.attempt();
        try {
          return await this.#attempt(deadline, attempt);
        } catch (error) {
          const fault = faultOf(error);
          // A node that was down may not know recent definitions yet: a table is really gone only if all nodes agree.
          // The ring's test of tenants fails without this.
          if (fault === "answer" && (nodesAgree || !tellsGone(error))) throw answerError(error);
          if (fault === "answer") nodesAgree = !(await this.#nodesDiffer());
          if (UNPREPARED.test(reasonOf(error))) await this.#requireKeyspaceOf(query);
          silence.unanswered();
          maybeSent ||= fault === "maybe_sent";
          if (await deadline.pause()) continue;
          if (kind === "write" && maybeSent)
            throw new AppError("unknown_outcome", `Cassandra did not tell how a write ended: ${reasonOf(error)}`);
          throw new AppError("unavailable", `Cassandra does not answer: ${reasonOf(error)}`);
        }
      }
    } finally {
      silence.over();
    }
  }

  async #nodesDiffer(): Promise<boolean> {
    return (await schemaDifference(this.#nodesUp())) !== undefined;
  }

  /** The driver does not say why it cannot prepare a known statement again, so check whether the keyspace exists. */
  async #requireKeyspaceOf(query: string): Promise<void> {
    const [, keyspace] = KEYSPACE.exec(query) ?? [];
    if (keyspace === undefined) return;
    if (await this.#nodesDiffer()) return;
    const readTimeout = CLUSTER_ATTEMPT_DEADLINE_MS;
    // If this fails, too, the next attempt reports the reason.
    const found = await this.#execute({ query: KEYSPACE_QUERY, params: [keyspace] }, { readTimeout }).catch(
      () => undefined,
    );
    if (found?.rowLength === 0) throw goneError(`keyspace ${keyspace} does not exist`);
  }

  #attempt<T>(deadline: Deadline, attempt: (readTimeoutMs: number) => Promise<T>): Promise<T> {
    if (this.#places.tryTake()) return this.#begin(deadline, attempt);
    return this.#place(deadline).then(() => this.#begin(deadline, attempt));
  }

  /** Runs one attempt on a place that is already taken; releases the place when the attempt ends. */
  #begin<T>(deadline: Deadline, attempt: (readTimeoutMs: number) => Promise<T>): Promise<T> {
    const leftMs = deadline.leftMs();
    if (leftMs === 0) {
      this.#places.leave();
      return Promise.reject(new NoTimeLeft("the call it is for has waited for too long"));
    }
    const work = attempt(Math.ceil(Math.min(leftMs, CLUSTER_ATTEMPT_DEADLINE_MS)));
    // The driver tries one node after another, each for this long.
    return deadline.bound(work, noAnswerInTime, this.#left);
  }

  /** Waits for a place until the deadline; the queue itself has no limit. */
  #place(deadline: Deadline): Promise<void> {
    return new Promise((resolve, reject) => {
      const cancel = deadline.atEnd(() => {
        giveUp();
        reject(noPlaceInTime());
      });
      const giveUp = this.#places.queue(() => {
        cancel();
        resolve();
      });
    });
  }
}

function undefinedIfGivenUp(error: unknown): undefined {
  const { ResponseError } = cassandra.errors;
  if (error instanceof ResponseError && error.code === responseErrorCodes.readFailure) return undefined;
  throw error;
}

interface Repeated {
  readonly kind: "read" | "write";
  /** The first statement of the request. */
  readonly query: string;
  readonly deadline: Deadline;
}

const UNPREPARED = /Prepared query with ID .* not found/;
const KEYSPACE = /\b(?:FROM|INTO|UPDATE)\s+(\w+)\./i;
const KEYSPACE_QUERY = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?";

/** Converts bytes, because the driver accepts them only as Buffer. */
function driverValue(value: CqlValue): unknown {
  if (value === undefined) return cassandra.types.unset;
  if (value instanceof Uint8Array && !Buffer.isBuffer(value))
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return value;
}

/** A client that is not connected yet. */
export function newClient(options: CassandraOptions): cassandra.Client {
  const { tls, account } = options.access ?? {};
  return new cassandra.Client({
    // By default the driver accepts any certificate.
    ...(tls && { sslOptions: { ca: tls.ca, ...tls.client, rejectUnauthorized: true, minVersion: "TLSv1.2" } }),
    ...(account && { authProvider: new cassandra.auth.PlainTextAuthProvider(account.user, account.password) }),
    contactPoints: [...options.contactPoints],
    localDataCenter: options.datacenter,
    // Without this port the driver contacts the peers of the contact points on 9042.
    protocolOptions: {
      port: portOf(options.contactPoints[0]),
      // `define` waits itself, also in cases in which the driver would not, and logs the reason.
      maxSchemaAgreementWaitSeconds: 0,
    },
    queryOptions: { consistency: consistencies.localQuorum },
    encoding: { map: Map, useBigIntAsLong: true },
    // Timeout of the driver's own requests: only this one detects a connection that dies during its setup.
    socketOptions: {
      connectTimeout: CLUSTER_HANDSHAKE_DEADLINE_MS,
      readTimeout: CLUSTER_HANDSHAKE_DEADLINE_MS,
      defunctReadTimeoutThreshold: CLUSTER_SILENT_REQUESTS_MAX,
    },
    // A hanging node would delay every new statement; other nodes prepare it when they first get it.
    prepareOnAllHosts: false,
    policies: { reconnection: new cassandra.policies.reconnection.ExponentialReconnectionPolicy(100, 2_000, false) },
    // Each tenant has its own set of statements.
    maxPrepared: 20_000,
  });
}

function portOf(contactPoint: string | undefined): number {
  const port = Number(contactPoint?.split(":").at(-1));
  if (!Number.isInteger(port))
    throw new AppError("invalid", `A contact point of Cassandra is host:port, not "${contactPoint ?? ""}".`);
  return port;
}
