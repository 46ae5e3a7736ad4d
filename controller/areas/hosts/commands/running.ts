import type { DispatchOptions, HostCommand, PeerCall, Target } from "../types.ts";
import type { CommandWait } from "./wait.ts";

/** Where a command is registered: in a session of this controller, or with the controller that holds the session. */
export type Place =
  | { readonly kind: "here"; readonly epoch: number }
  /** `epoch` is `undefined` until the other controller has answered the call. */
  | { readonly kind: "there"; readonly controller: string; readonly call: PeerCall; epoch: number | undefined };

/** A command that waits for its result. */
export interface Running {
  readonly target: Target;
  readonly command: HostCommand;
  readonly options: DispatchOptions;
  readonly wait: CommandWait;
  place: Place | undefined;
  /** True if a session may have received the command. */
  sent: boolean;
  /** True after `COMMAND_REACH_MS`. By then an agent should have received the command. */
  late: boolean;
  /** True while this controller looks for another one that holds the session. */
  isLookedFor: boolean;
  stopTimers: () => void;
  stopAgain: (() => void) | undefined;
}

export function isCancelled({ options }: Running): boolean {
  return options.signal?.aborted === true;
}

/** True if an agent may have received the command. */
export function mayHaveArrived({ sent, place }: Running): boolean {
  return sent || place?.kind === "there";
}
