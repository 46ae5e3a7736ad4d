import { Client, type QueryOptions } from "cassandra-driver";

/** A call of the driver, to be made again. */
export interface DriverCall {
  readonly query: string;
  readonly parameters: readonly unknown[];
  readonly options: QueryOptions;
}

type Execute = (this: Client, query: string, parameters: readonly unknown[], options: QueryOptions) => Promise<unknown>;

/** What the driver is asked while `work` runs, one statement at a time, in this whole process. */
export async function driverCalls(work: () => Promise<unknown>): Promise<readonly DriverCall[]> {
  const calls: DriverCall[] = [];
  const prototype = Client.prototype as unknown as { execute: Execute };
  const { execute } = prototype;
  prototype.execute = function (query, parameters, options) {
    calls.push({ query, parameters, options });
    return execute.call(this, query, parameters, options);
  };
  try {
    await work();
  } finally {
    prototype.execute = execute;
  }
  return calls;
}

/** The same calls again, each when the one before is answered. */
export async function repeatCalls(client: Client, calls: readonly DriverCall[]): Promise<void> {
  for (const { query, parameters, options } of calls) await client.execute(query, [...parameters], options);
}
