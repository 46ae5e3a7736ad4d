import type { Command, ControllerFrame, Depot, Exec } from "../../../../proto/gen/agent/v1/agent.ts";
import type { DepotToDeploy, DesiredPolicy, HostCommand } from "../types.ts";

/** Converts our types to those of the agent protocol. */

export function depotFrame(depot: DepotToDeploy): Depot {
  return {
    name: depot.name,
    version: depot.version,
    files: depot.files.map((file) => ({ ...file })),
    command: depot.command ?? "",
    remotePath: depot.remotePath ?? "",
    environment: { ...depot.environment },
  };
}

function execFrame(command: HostCommand & { kind: "exec" }): Exec {
  return {
    line: command.line,
    environment: { ...command.environment },
    depot: command.depot ?? "",
    streamOutput: true,
    stdin: Buffer.from(command.input ?? []),
  };
}

export function desiredFrame(state: {
  readonly revision: number;
  readonly policies: readonly DesiredPolicy[];
}): ControllerFrame["frame"] {
  const policies = state.policies.map((policy) => ({
    name: policy.name,
    revision: policy.revision,
    spec: policy.spec,
    depot: policy.depot && depotFrame(policy.depot),
    conf: policy.conf && Buffer.from(policy.conf),
  }));
  return { $case: "desired", value: { revision: state.revision, policies } };
}

export function depotDigests(depot: DepotToDeploy | undefined): string[] {
  return depot?.files.map((file) => file.digest) ?? [];
}

export function commandBody(command: HostCommand): Command["body"] {
  switch (command.kind) {
    case "exec":
      return command.user === undefined
        ? { $case: "exec", value: execFrame(command) }
        : { $case: "execAs", value: { exec: execFrame(command), user: command.user } };
    case "deploy":
      return { $case: "deploy", value: depotFrame(command) };
    case "undeploy":
      return {
        $case: "undeploy",
        value: {
          name: command.name,
          version: command.version,
          command: command.command ?? "",
          remotePath: command.remotePath ?? "",
        },
      };
  }
}
