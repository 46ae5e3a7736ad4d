import type cassandra from "cassandra-driver";

interface ControlConnection {
  _refresh: (...given: readonly unknown[]) => Promise<void>;
}

/**
 * Keeps the process alive when the driver's control connection, which follows the nodes of the cluster, fails in the
 * background. It looks for another node from timers and listeners; where two of them do at once, one resets the
 * connection the other works with, and the other's promise is rejected with nothing to hear it, which ends a process
 * of Node (cassandra-driver 4.10.0, `ControlConnection._refresh`). The one that reset it goes on.
 */
export function keepControlConnection(client: cassandra.Client, note: (error: unknown) => void): void {
  const connection = controlConnectionOf(client);
  const refresh = connection._refresh.bind(connection);
  connection._refresh = (...given) => refresh(...given).catch(note);
}

export function controlConnectionOf(client: cassandra.Client): ControlConnection {
  return (client as unknown as { readonly controlConnection: ControlConnection }).controlConnection;
}
