import { Client, type QueryOptions } from "cassandra-driver";

/** A call of the driver that can be repeated. */
export type DriverCall = (client: Client) => Promise<unknown>;

type Execute = (this: Client, query: string, parameters: unknown[], options: QueryOptions) => Promise<unknown>;
type Queries = { query: string; params?: unknown[] }[];
type MakeBatch = (this: Client, queries: Queries, options: QueryOptions) => Promise<unknown>;

/** Runs `work` and returns the driver calls of this whole process meanwhile, one for each statement or batch. */
export async function driverCalls(work: () => Promise<unknown>): Promise<readonly DriverCall[]> {
  const calls: DriverCall[] = [];
  const prototype = Client.prototype as unknown as { execute: Execute; batch: MakeBatch };
  const { execute, batch } = prototype;
  prototype.execute = function (query, parameters, options) {
    calls.push((client) => execute.call(client, query, [...parameters], options));
    return execute.call(this, query, parameters, options);
  };
  prototype.batch = function (queries, options) {
    calls.push((client) => batch.call(client, queries, options));
    return batch.call(this, queries, options);
  };
  try {
    await work();
  } finally {
    Object.assign(prototype, { execute, batch });
  }
  return calls;
}

/** Repeats the calls, each when the one before is answered. */
export async function repeatCalls(client: Client, calls: readonly DriverCall[]): Promise<void> {
  for (const call of calls) await call(client);
}
