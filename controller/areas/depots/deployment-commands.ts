import { withinTime } from "../../../common/concurrency.ts";
import { errorText, isAppError } from "../../../common/errors.ts";
import { DISPATCH_GRACE_MS } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { CommandOutcome, FinalState, HostCommand, Hosts } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { OpenDeployment } from "./deployment-records.ts";
import type { DeploymentOutcome } from "./types.ts";

interface Dependencies {
  readonly hosts: Pick<Hosts, "dispatch" | "noteDepot">;
  readonly runtime: Pick<Runtime, "clock" | "log">;
}

/** A command for one host. It must end by the deadline of its deployment. */
interface DeploymentCommand {
  readonly host: string;
  readonly command: HostCommand;
  readonly commandId: string;
  /** By the monotonic clock. */
  readonly deadlineMonotonicMs: number;
}

/** Sends the commands of deployments to hosts. Records in the host records which depots the hosts have. */
export class DeploymentCommands {
  readonly #hosts: Dependencies["hosts"];
  readonly #runtime: Dependencies["runtime"];

  constructor({ hosts, runtime }: Dependencies) {
    this.#hosts = hosts;
    this.#runtime = runtime;
  }

  /** Always resolves with a final state, at the latest `DISPATCH_GRACE_MS` after the deadline. */
  async send(
    principal: Principal,
    { host, command, commandId, deadlineMonotonicMs }: DeploymentCommand,
  ): Promise<CommandOutcome> {
    const { clock } = this.#runtime;
    const startedMs = clock.nowMs();
    const ended = (state: FinalState, message: string): CommandOutcome => ({
      host,
      state,
      message,
      startedMs,
      endedMs: clock.nowMs(),
    });
    const timeoutMs = deadlineMonotonicMs - clock.monotonicMs();
    if (timeoutMs <= 0) return ended("timeout", "Its turn did not come before the deadline.");
    try {
      const work = this.#hosts.dispatch(principal, host, command, { timeoutMs, commandId });
      return (
        (await withinTime(clock, work, timeoutMs + DISPATCH_GRACE_MS)) ??
        ended("timeout", "The host did not answer in time.")
      );
    } catch (error) {
      if (isAppError(error, "not_found")) return ended("unreachable", `There is no host ${host}.`);
      this.#runtime.log.warn({ err: error, host, commandId }, "deployment could not be sent");
      return ended("failed", errorText(error));
    }
  }

  /**
   * Records a successful deployment or removal in the record of the host. If this fails, the message of the returned
   * outcome says so.
   */
  async note(
    principal: Principal,
    action: OpenDeployment["action"],
    target: DeploymentOutcome,
  ): Promise<DeploymentOutcome> {
    try {
      const depot = { name: target.depot, version: target.version };
      await this.#hosts.noteDepot(principal, target.host, depot, action === "deploy");
      return target;
    } catch (error) {
      return { ...target, message: `Done, but the host record does not show it yet: ${errorText(error)}` };
    }
  }
}
