import { withinTime } from "../../../common/concurrency.ts";
import { errorText, isAppError } from "../../../common/errors.ts";
import { DISPATCH_GRACE_MS, EXEC_ERROR_TAIL_BYTES } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { CommandOutcome, FinalState, HostCommand, Hosts, OutputPiece } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { DeploymentAction } from "./deployment-records.ts";
import type { DeploymentOutcome } from "./types.ts";

interface Dependencies {
  readonly hosts: Pick<Hosts, "dispatch" | "noteDepot">;
  readonly runtime: Pick<Runtime, "clock" | "log">;
}

/** Final state of a host to which no command can be sent. */
export interface NotSent {
  readonly kind: "none";
  readonly state: FinalState;
  readonly message: string;
}

/** A command for one host. It must end by the deadline of its deployment. */
interface DeploymentCommand {
  readonly host: string;
  readonly command: HostCommand | NotSent;
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

  /**
   * Always resolves with a final state, at the latest `DISPATCH_GRACE_MS` after the deadline. The message ends with the
   * last output of the command.
   */
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
    if (command.kind === "none") return ended(command.state, command.message);
    const timeoutMs = deadlineMonotonicMs - clock.monotonicMs();
    if (timeoutMs <= 0) return ended("timeout", "Its turn did not come before the deadline.");
    try {
      const output = new OutputTail();
      const onOutput = ({ data }: OutputPiece): void => output.take(data);
      const work = this.#hosts.dispatch(principal, host, command, { timeoutMs, commandId, onOutput });
      const outcome = await withinTime(clock, work, timeoutMs + DISPATCH_GRACE_MS);
      return output.shownIn(outcome ?? ended("timeout", "The host did not answer in time."));
    } catch (error) {
      if (isAppError(error, "not_found")) return ended("unreachable", `There is no host ${host}.`);
      this.#runtime.log.warn({ err: error, host, commandId }, "deployment could not be sent");
      return ended("failed", errorText(error));
    }
  }

  /**
   * Records a successful deployment or removal in the record of the host. If this fails, the message of the returned
   * outcome says so. Other actions change nothing there.
   */
  async note(principal: Principal, action: DeploymentAction, target: DeploymentOutcome): Promise<DeploymentOutcome> {
    if (action !== "deploy" && action !== "undeploy") return target;
    try {
      const depot = { name: target.depot, version: target.version };
      await this.#hosts.noteDepot(principal, target.host, depot, action === "deploy");
      return target;
    } catch (error) {
      return { ...target, message: `Done, but the host record does not show it yet: ${errorText(error)}` };
    }
  }
}

/** The last bytes of the output of a command. */
class OutputTail {
  #bytes: Buffer = Buffer.alloc(0);

  take(data: Uint8Array): void {
    const all = Buffer.concat([this.#bytes, data]);
    this.#bytes = all.subarray(Math.max(0, all.length - EXEC_ERROR_TAIL_BYTES));
  }

  shownIn(outcome: CommandOutcome): CommandOutcome {
    const text = this.#bytes.toString().trim();
    if (text === "") return outcome;
    const message = outcome.message.replace(/\.$/, "");
    return { ...outcome, message: message === "" ? text : `${message}: ${text}` };
  }
}
