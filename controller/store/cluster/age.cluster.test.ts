import { Client, type types } from "cassandra-driver";
import { afterAll, beforeAll } from "vitest";
import { describeCluster, openClusterSubject } from "../../../test/helpers/cluster.ts";
import { ageContract } from "../contract/age.ts";

type Execute = (this: Client, ...args: unknown[]) => Promise<types.ResultSet>;

describeCluster("contract", () => {
  /** Cassandra warns of a read that passes 1,000 marks of removals, and refuses one that passes 100,000. */
  const warnings: string[] = [];
  const prototype = Client.prototype as unknown as { execute: Execute };
  const { execute } = prototype;
  beforeAll(() => {
    prototype.execute = async function (...args) {
      const result = await execute.apply(this, args);
      warnings.push(...(result.info.warnings ?? []));
      return result;
    };
  });
  afterAll(() => {
    prototype.execute = execute;
  });
  ageContract("cluster", openClusterSubject, { warnings: () => warnings.splice(0) });
});
