import cassandra from "cassandra-driver";
import { expect, test } from "vitest";
import { controlConnectionOf, keepControlConnection } from "./control-connection.ts";

/** Parts of the driver's control connection, so that one refresh finds its connection reset by another. */
interface Parts {
  connection: unknown;
  _refreshControlConnection: () => Promise<void>;
  _refreshHosts: () => Promise<void>;
  _profileManager: { getDefaultLoadBalancing: () => unknown };
}

function overtaken(): cassandra.Client {
  const client = new cassandra.Client({ contactPoints: ["127.0.0.1"], localDataCenter: "datacenter1" });
  const parts = controlConnectionOf(client) as unknown as Parts;
  parts._profileManager.getDefaultLoadBalancing = () => ({
    newQueryPlan: (_keyspace: unknown, _options: unknown, done: (error: unknown, plan: unknown) => void) =>
      done(undefined, [].values()),
  });
  parts._refreshControlConnection = () => {
    parts.connection = { endpoint: "127.0.0.1:9042", endpointFriendlyName: "127.0.0.1:9042" };
    return Promise.resolve();
  };
  parts._refreshHosts = () => {
    parts.connection = null;
    return Promise.reject(new Error("The connection was closed."));
  };
  return client;
}

test("a refresh of the driver's control connection that is overtaken by another is noted, and rejects nothing", async () => {
  await expect(controlConnectionOf(overtaken())._refresh()).rejects.toThrow("reading 'endpoint'");
  const client = overtaken();
  const noted: unknown[] = [];
  keepControlConnection(client, (error) => noted.push(error));
  await controlConnectionOf(client)._refresh();
  expect(noted).toEqual([expect.objectContaining({ message: expect.stringContaining("endpoint") })]);
});
