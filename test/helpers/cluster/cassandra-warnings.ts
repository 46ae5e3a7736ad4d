import { Client, type types } from "cassandra-driver";

type Execute = (this: Client, ...args: unknown[]) => Promise<types.ResultSet>;

/**
 * Collects Cassandra's warnings in this process until `stop`, e.g. for a read that passes 1,000 tombstones. Cassandra
 * refuses a read that passes 100,000.
 */
export function keepWarnings(): { readonly take: () => string[]; readonly stop: () => void } {
  const warnings: string[] = [];
  const prototype = Client.prototype as unknown as { execute: Execute };
  const { execute } = prototype;
  prototype.execute = async function (...args) {
    const result = await execute.apply(this, args);
    warnings.push(...(result.info.warnings ?? []));
    return result;
  };
  return { take: () => warnings.splice(0), stop: () => void (prototype.execute = execute) };
}
