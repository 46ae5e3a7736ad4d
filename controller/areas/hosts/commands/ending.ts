import { COMMAND_END_GRACE_MS } from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import type { LiveSession } from "../session/live-session.ts";
import { isCancelled, mayHaveArrived, type Running } from "./running.ts";

interface EndingDependencies {
  readonly runtime: Runtime;
  readonly live: (tenant: string, host: string) => LiveSession | undefined;
}

/** Ends of commands without a result: cancelled, out of time, or never sent. */
export class CommandEnding {
  readonly #with: EndingDependencies;

  constructor(dependencies: EndingDependencies) {
    this.#with = dependencies;
  }

  /** The caller cancelled the command. A command that no agent may have received ends at once. */
  cancelled(running: Running): void {
    const end = (): void => running.wait.finish({ state: "cancelled", message: "The command was cancelled." });
    if (!mayHaveArrived(running)) return end();
    // A host that is away receives the cancel when it reconnects, if the deadline has not passed.
    if (this.#tellCancel(running)) this.#after(COMMAND_END_GRACE_MS, running, () => this.#isHeard(running) && end());
  }

  /** Returns true if the session that received the cancel still exists. */
  #isHeard({ place, target: { tenant, host } }: Running): boolean {
    return place?.kind === "here" ? this.#with.live(tenant, host)?.epoch === place.epoch : place?.epoch !== undefined;
  }

  /** The time of the command is over. */
  timedOut(running: Running): void {
    if (!mayHaveArrived(running)) return this.unreached(running);
    running.wait.ranOut(
      isCancelled(running)
        ? { state: "cancelled", message: "The command was cancelled; its host has not said how it ended." }
        : { state: "timeout", message: `The command did not end within ${running.options.timeoutMs} ms.` },
    );
    this.#endsWithinGrace(running, () => void running.wait.finishUnlessStored());
  }

  /**
   * Tells the agent to end the command. The agent answers when every process of the command is dead. Without an answer,
   * the command ends here after the grace period.
   */
  #endsWithinGrace(running: Running, end: () => void): void {
    const told = this.#tellCancel(running);
    this.#after(told ? COMMAND_END_GRACE_MS : 0, running, end);
  }

  #after(delayMs: number, running: Running, act: () => void): void {
    const stop = this.#with.runtime.clock.after(delayMs, act);
    const { stopTimers } = running;
    running.stopTimers = () => {
      stopTimers();
      stop();
    };
  }

  /** No session was found in time. */
  unreached(running: Running): void {
    if (mayHaveArrived(running)) return;
    running.wait.finish({
      state: "unreachable",
      message: `No controller holds a session of ${running.target.host}: nothing was sent.`,
    });
  }

  /** Returns true if the cancel was sent to a holder of the command. */
  #tellCancel({ place, target, options }: Running): boolean {
    if (place?.kind === "there") {
      place.call.cancel();
      return true;
    }
    return this.cancelHere({ ...target, commandId: options.commandId });
  }

  /** Sends the cancel in the session of its host on this controller; false without one. */
  cancelHere({
    tenant,
    host,
    commandId,
  }: {
    readonly tenant: string;
    readonly host: string;
    readonly commandId: string;
  }): boolean {
    const session = this.#with.live(tenant, host);
    session?.send({ $case: "cancel", value: { commandId, epoch: session.epoch } });
    return session !== undefined;
  }
}
