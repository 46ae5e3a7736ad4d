import type cassandra from "cassandra-driver";

interface ControlConnection {
  _refresh: (...given: readonly unknown[]) => Promise<void>;
}

/**
 * Keeps the process alive when the driver's control connection, which follows the nodes of the cluster, fails in the
 * background. Timers and listeners make it look for another node. If two of them do so at once, one resets the
 * connection that the other uses. The other's promise is then rejected without a handler, which ends a Node process
 * (cassandra-driver 4.10.0, `ControlConnection._refresh`). The one that reset the connection continues.
 */
export function keepControlConnection(client: cassandra.Client, note: (error: unknown) => void): void {
  const connection = controlConnectionOf(client);
  const refresh = connection._refresh.bind(connection);
  connection._refresh = (...given) => refresh(...given).catch(note);
}

export function controlConnectionOf(client: cassandra.Client): ControlConnection {
  return (client as unknown as { readonly controlConnection: ControlConnection }).controlConnection;
}
