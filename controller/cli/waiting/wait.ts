import { errorText } from "../../../common/errors.ts";
import { CLI_WAIT_LOOK_MAX_MS, CLI_WAIT_LOOK_MS } from "../../../common/limits.ts";
import { wait, type Clock } from "../../../common/time.ts";
import { isPassing } from "../failure.ts";
import type { Look } from "./conditions.ts";

export interface WaitOptions {
  /** Looks whether the state is reached. */
  readonly look: (signal: AbortSignal) => Promise<Look>;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly note: (text: string) => void;
}

/** `lost`: the state can no longer be reached. */
export interface Waited {
  readonly end: "reached" | "timeout" | "lost" | "cancelled";
  /** State at the last look. */
  readonly text: string;
}

/**
 * Looks until a state is reached, with pauses that grow from `CLI_WAIT_LOOK_MS` to `CLI_WAIT_LOOK_MAX_MS` and begin anew
 * at each change. A controller that is not reached is told once, and asked again.
 */
export async function waitFor({ look, timeoutMs, clock, signal, note }: WaitOptions): Promise<Waited> {
  const over = new AbortController();
  const end = (): void => over.abort();
  const cancel = clock.after(timeoutMs, end);
  signal.addEventListener("abort", end, { once: true });
  let [text, told, pauseMs] = ["nothing was seen", "", CLI_WAIT_LOOK_MS];
  try {
    while (!over.signal.aborted && !signal.aborted) {
      try {
        const seen = await look(over.signal);
        if (seen.isReached) return { end: "reached", text: seen.text };
        if (seen.isLost === true) return { end: "lost", text: seen.text };
        pauseMs = seen.text === text ? Math.min(CLI_WAIT_LOOK_MAX_MS, pauseMs * 2) : CLI_WAIT_LOOK_MS;
        text = seen.text;
      } catch (error) {
        if (over.signal.aborted) break;
        if (!isPassing(error)) throw error;
        text = errorText(error);
        if (text !== told) note(`${text} Trying again.`);
        told = text;
      }
      await wait(clock, pauseMs, over.signal);
    }
    return { end: signal.aborted ? "cancelled" : "timeout", text };
  } finally {
    cancel();
    signal.removeEventListener("abort", end);
  }
}
