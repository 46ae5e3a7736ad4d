import { errorText } from "../../../common/errors.ts";
import { CLI_WATCH_MAX_SECONDS } from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import { CANCELLED, isPassing } from "../failure.ts";
import { timeText } from "../formats/times.ts";
import type { Call } from "./call.ts";
import type { CommandDeclaration } from "./declaration.ts";
import type { Recorded, Shell } from "./shell.ts";

/** The upper left corner, and no second line for what does not fit in one. */
const START = "\u001b[H\u001b[?7l";
/** Clears the rest. */
const END = "\u001b[J\u001b[?7h";

type Run = NonNullable<CommandDeclaration["run"]>;

/**
 * Runs a command that only reads again and again, until a signal fires or the reader of the output is gone. A terminal
 * shows the last answer with its time. A pipe gets each answer that differs from the one before. A controller that is
 * not reached is told once, and asked again.
 */
export async function watched(call: Call, run: Run): Promise<number> {
  const { shell } = call;
  const everyMs = (call.number("watch", { max: CLI_WATCH_MAX_SECONDS }) ?? 1) * 1_000;
  const signal = shell.ended();
  const view = shell.terminal === undefined ? new WatchedPipe(shell) : new WatchedTerminal(shell, everyMs);
  // A reader can be missed only if it was seen. One like head is gone after the first answer.
  if (shell.terminal === undefined) await shell.isReaderGone();
  for (let isGone = false; !isGone && !signal.aborted; await wait(shell.clock, isGone ? 0 : everyMs, signal)) {
    const round = shell.recording();
    try {
      await run(call.at(round.shell));
      isGone = !(await view.answered(round.recorded));
    } catch (error) {
      if (signal.aborted) break;
      if (!isPassing(error)) throw error;
      isGone = !(await view.failed(errorText(error)));
    }
  }
  return signal.aborted ? CANCELLED : 0;
}

interface WatchedView {
  /** Both return false if nothing can be written any more. */
  answered(recorded: readonly Recorded[]): Promise<boolean>;
  failed(why: string): Promise<boolean>;
}

class WatchedPipe implements WatchedView {
  readonly #shell: Shell;
  #last: string | undefined;
  #isFailing = false;

  constructor(shell: Shell) {
    this.#shell = shell;
  }

  async answered(recorded: readonly Recorded[]): Promise<boolean> {
    if (this.#isFailing) this.#shell.note("The controller answers again.");
    this.#isFailing = false;
    const answer = textOf(recorded.filter(({ stream }) => stream === "stdout"));
    if (answer === this.#last) return this.#isRead();
    this.#last = answer;
    for (const { stream, text } of recorded) if (stream === "stderr") this.#shell.note(text.trimEnd());
    return this.#shell.write(answer);
  }

  failed(why: string): Promise<boolean> {
    if (!this.#isFailing) this.#shell.note(`odp: ${why} Trying again.`);
    this.#isFailing = true;
    return this.#isRead();
  }

  /** A pipe without a reader fails only when something is written, which may be never. */
  async #isRead(): Promise<boolean> {
    return !(await this.#shell.isReaderGone());
  }
}

class WatchedTerminal implements WatchedView {
  readonly #shell: Shell;
  readonly #everyMs: number;
  #last: readonly string[] = [];

  constructor(shell: Shell, everyMs: number) {
    this.#shell = shell;
    this.#everyMs = everyMs;
  }

  answered(recorded: readonly Recorded[]): Promise<boolean> {
    this.#last = [`${this.#now()}, every ${this.#everyMs / 1_000} s`, "", ...textOf(recorded).trimEnd().split("\n")];
    return this.#draw(this.#last);
  }

  failed(why: string): Promise<boolean> {
    return this.#draw([`${this.#now()}: ${why} Trying again.`, ...this.#last]);
  }

  #now(): string {
    const { clock, zone } = this.#shell;
    return timeText(Math.floor(clock.nowMs() / 1_000) * 1_000, zone);
  }

  /** Redraws the terminal from its upper left corner. Lines that have no room are counted on the last one. */
  #draw(lines: readonly string[]): Promise<boolean> {
    const { rows } = this.#shell.terminal ?? { rows: lines.length + 1 };
    const room = Math.max(1, rows - 2);
    const rest = lines.length - room;
    const shown = rest > 0 ? [...lines.slice(0, room), `(${rest} more lines)`] : lines;
    return this.#shell.write(`${START}${shown.map((line) => `${line}\u001b[K\n`).join("")}${END}`);
  }
}

function textOf(recorded: readonly Recorded[]): string {
  return recorded.map(({ text }) => text).join("");
}
