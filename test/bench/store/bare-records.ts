import { randomBytes } from "node:crypto";
import { Client } from "cassandra-driver";
import { Packr } from "msgpackr";
import { ulidSeries } from "../../../common/ids.ts";
import type { ClusterSettings } from "../../../deploy/local/cluster.ts";
import { perSecond } from "../driver/frame.ts";

/**
 * The rows that our store makes of an access log. The bare driver writes them into a table and in batches of the same
 * form.
 */

const LINE = /^(\S+) (\S+) (\S+) \[([^\]]+)\] "(\S+) (\S+) HTTP\/([\d.]+)" (\d+) (\d+) ("[^"]*") ("[^"]*")$/;
const ROWS_PER_BATCH = 32;
const BATCHES_IN_FLIGHT = 32;
const ATTEMPTS = 5;
const SHARDS = 4;
const CID = 4_242;

export class BareRecords {
  readonly #client: Client;
  readonly #keyspace: string;
  readonly #packr = new Packr({ useRecords: false });

  private constructor(client: Client, keyspace: string) {
    this.#client = client;
    this.#keyspace = keyspace;
  }

  static async open(settings: ClusterSettings): Promise<BareRecords> {
    const [host = "", port = "9042"] = (settings.cassandraContactPoints[0] ?? "").split(":");
    const client = new Client({
      contactPoints: [host],
      localDataCenter: settings.cassandraDatacenter,
      protocolOptions: { port: Number(port) },
      encoding: { useBigIntAsLong: true },
    });
    const keyspace = `bare${randomBytes(5).toString("hex")}`;
    await client.execute(
      `CREATE KEYSPACE ${keyspace} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`,
    );
    await client.execute(
      `CREATE TABLE ${keyspace}.records_years (cid int, hour int, shard smallint, id text, value blob, expires bigint, terms set<text>, PRIMARY KEY ((cid, hour, shard), id))
       WITH CLUSTERING ORDER BY (id DESC) AND compaction = {'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'DAYS', 'compaction_window_size': 28}`,
    );
    await client.execute(`CREATE INDEX ON ${keyspace}.records_years (terms) USING 'sai'`);
    return new BareRecords(client, keyspace);
  }

  /** Rows per second. */
  async write(lines: readonly string[]): Promise<number> {
    const timeMs = Date.now();
    const id = ulidSeries(timeMs, randomBytes(10));
    const rows = lines.map((line, n) => this.#row(line, id(n), timeMs));
    const batches = Array.from({ length: Math.ceil(rows.length / ROWS_PER_BATCH) }, (_, at) =>
      rows.slice(at * ROWS_PER_BATCH, (at + 1) * ROWS_PER_BATCH),
    );
    const query = `UPDATE ${this.#keyspace}.records_years USING TIMESTAMP ? AND TTL ? SET value = ?, terms = terms + ? WHERE cid = ? AND hour = ? AND shard = ? AND id = ?`;
    const perSecondOfBatches = await perSecond(batches.length, BATCHES_IN_FLIGHT, (at) => {
      const queries = (batches[at] ?? []).map((params) => ({
        query,
        params: [...params.slice(0, 6), at % SHARDS, params[6]],
      }));
      return this.#batch(queries);
    });
    return (perSecondOfBatches * rows.length) / batches.length;
  }

  async close(): Promise<void> {
    await this.#client.execute(`DROP KEYSPACE ${this.#keyspace}`, [], { readTimeout: 60_000 });
    await this.#client.shutdown();
  }

  /** An overloaded node answers with a timeout, and the writer has to repeat the batch. */
  async #batch(queries: { readonly query: string; readonly params: unknown[] }[]): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#client.batch(queries, { prepare: true, logged: false, isIdempotent: true });
        return;
      } catch (error) {
        if (attempt === ATTEMPTS) throw error;
      }
    }
  }

  #row(line: string, id: string, timeMs: number): unknown[] {
    const fields = (LINE.exec(line) ?? []).slice(1);
    const value = this.#packr.pack(fields.flatMap((field, at) => [at + 16, field]));
    return [
      BigInt(timeMs) * 1_000n,
      0,
      Buffer.from(value),
      [`a16=${fields[0]}`, `a23=${fields[7]}`],
      CID,
      Math.floor(timeMs / 3_600_000),
      id,
    ];
  }
}
