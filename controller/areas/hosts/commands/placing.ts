import { errorText } from "../../../../common/errors.ts";
import { COMMAND_PLACE_AGAIN_MS, COMMAND_PLACE_LATE_MS } from "../../../../common/limits.ts";
import type { Command } from "../../../../proto/gen/agent/v1/agent.ts";
import type { Runtime } from "../../../runtime.ts";
import { commandBody } from "../session/frames.ts";
import type { LiveSession } from "../session/live-session.ts";
import type { Presence } from "../session/presence.ts";
import type { PeerCall, Peers } from "../types.ts";
import type { CommandEnding } from "./ending.ts";
import { isCancelled, mayHaveArrived, type Place, type Running } from "./running.ts";

interface PlacingDependencies {
  readonly runtime: Runtime;
  readonly controllerId: string;
  readonly live: (tenant: string, host: string) => LiveSession | undefined;
  readonly presence: Pick<Presence, "holderOf">;
  /** Absent: there are no other controllers. */
  readonly peers?: Pick<Peers, "watch"> | undefined;
}

/** Brings commands to the sessions of their hosts, on this controller or on the one that holds the session. */
export class CommandPlacing {
  readonly #with: PlacingDependencies;
  readonly #ending: CommandEnding;

  constructor(dependencies: PlacingDependencies, ending: CommandEnding) {
    this.#with = dependencies;
    this.#ending = ending;
  }

  /**
   * Sends the command in the session of its host, here or on another controller, unless it was already sent in that
   * session. A cancelled command is sent with no time left, so a host that does not have it never starts it.
   */
  place(running: Running): void {
    if (running.wait.over || (isCancelled(running) && !mayHaveArrived(running))) return;
    const { tenant, host } = running.target;
    const session = this.#with.live(tenant, host);
    if (session) this.#placeHere(running, session);
    else if (!running.isLookedFor) void this.#placeElsewhere(running);
  }

  async #placeElsewhere(running: Running): Promise<void> {
    const { tenant, host } = running.target;
    const { presence, controllerId, runtime } = this.#with;
    running.isLookedFor = true;
    const holder = await presence.holderOf(tenant, host).catch((error: unknown) => {
      runtime.log.debug({ tenant, host, reason: errorText(error) }, "the session of a host is looked for again");
      return undefined;
    });
    running.isLookedFor = false;
    if (running.wait.over) return;
    // The session may have begun here in the meantime.
    const session = this.#with.live(tenant, host);
    if (session) this.#placeHere(running, session);
    else if (holder && holder.controller !== controllerId) this.#placeThere(running, holder);
    else this.#again(running);
  }

  #placeHere(running: Running, session: LiveSession): void {
    if (running.place?.kind === "here" && running.place.epoch === session.epoch) return;
    this.leave(running);
    running.place = { kind: "here", epoch: session.epoch };
    running.sent = true;
    session.send({ $case: "command", value: this.#frame(running, session.epoch) });
    running.wait.catchUp();
    if (isCancelled(running)) this.#ending.cancelled(running);
  }

  #placeThere(running: Running, holder: { readonly controller: string; readonly epoch: number }): void {
    const { place } = running;
    if (place?.kind === "there" && place.controller === holder.controller && (place.epoch ?? Infinity) >= holder.epoch)
      return;
    this.leave(running);
    const { tenant, host } = running.target;
    // Ignores events of an earlier call.
    const mine = (act: (there: Place & { kind: "there" }) => void) => () =>
      running.place?.kind === "there" && running.place.call === call && act(running.place);
    const call: PeerCall | undefined = this.#with.peers?.watch(
      holder.controller,
      { tenant, host, command: this.#frame(running, 0) },
      {
        output: (output) => running.wait.output(output),
        result: (result) => running.wait.result(result),
        state: (state) => running.wait.state(state),
        lost: () => running.wait.lost(),
        watching: (epoch) => mine((there) => this.#registered(running, there, epoch))(),
        notHeld: mine(() => this.#moveOn(running)),
        gone: mine((there) => {
          // The command may have been sent before the connection broke.
          if (there.epoch === undefined) running.sent = true;
          this.#moveOn(running);
        }),
      },
    );
    if (!call) return this.#again(running);
    running.place = { kind: "there", controller: holder.controller, call, epoch: undefined };
  }

  #registered(running: Running, there: Place & { kind: "there" }, epoch: number): void {
    there.epoch = epoch;
    running.sent = true;
    running.wait.catchUp();
    if (isCancelled(running)) this.#ending.cancelled(running);
    this.place(running);
  }

  #moveOn(running: Running): void {
    running.place = undefined;
    this.#again(running);
  }

  #again(running: Running): void {
    if (running.late && !mayHaveArrived(running)) return this.#ending.unreached(running);
    const delayMs = running.late ? COMMAND_PLACE_LATE_MS : COMMAND_PLACE_AGAIN_MS;
    running.stopAgain ??= this.#with.runtime.clock.after(delayMs, () => {
      running.stopAgain = undefined;
      if (running.place?.kind !== "there") this.place(running);
    });
  }

  /** Gives up the place of the command: it is sent again when it is placed again. */
  leave(running: Running): void {
    if (running.place?.kind === "there") running.place.call.end();
    running.place = undefined;
  }

  #frame(running: Running, epoch: number): Command {
    const { options, command, target, wait } = running;
    const sentMs = this.#with.runtime.clock.nowMs();
    return {
      id: options.commandId,
      epoch,
      deadlineMs: isCancelled(running) ? sentMs : wait.startedMs + options.timeoutMs,
      traceparent: target.traceparent,
      sentMs,
      body: commandBody(command),
    };
  }
}
