import { AppError } from "../../../../common/errors.ts";
import {
  CHANGE_BATCH_MAX,
  RECORD_MAX_BYTES,
  SCRIPT_MESSAGE_MAX_CHARACTERS,
  SENT_FRAMES_MAX,
  SENT_FRAMES_MAX_CHARACTERS,
  SENT_LINES_MAX,
} from "../../../../common/limits.ts";
import type { Random } from "../../../../common/time.ts";
import { requireSending, sendFrame, type Notifications } from "../../notifications/index.ts";
import { requireOneOf, requirePermission, type Principal } from "../../permissions/index.ts";
import { FailureLog } from "./line-failures.ts";
import { type LineBytes, LineMarks } from "./line-marks.ts";
import { endOfLines, RuleLines, type LinesDependencies, type LinesResult } from "./lines.ts";
import type { Rule, Rules } from "../types.ts";

export interface SentLinesRequest {
  /** Key of the rule for the lines. Either this or `subject` is given. */
  readonly rule?: string | undefined;
  /** Channel that gets each line as a frame. */
  readonly subject?: string | undefined;
  readonly text: string;
  /** True if the lines may be malformed. Only with `rule`. */
  readonly isMarked?: boolean;
  /** The bytes of `text` if some lines are malformed. The text has U+FFFD in their place. */
  readonly malformed?: LineBytes | undefined;
  readonly signal: AbortSignal;
}

/** For a rule the result of its lines; for a channel the number of frames. */
export type SentLinesResult = LinesResult | { readonly frames: number };

interface Dependencies extends LinesDependencies {
  readonly rules: Pick<Rules, "load">;
  readonly notifications: Pick<Notifications, "publish">;
  readonly random: Random;
}

const IDENTITY_BYTES = 16;

/** Takes lines that a program sends, for a rule or for a channel. Blank lines are left out. */
export class SentLines {
  readonly #with: Dependencies;
  readonly #lines: RuleLines;
  readonly #failures: FailureLog;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
    this.#lines = new RuleLines(dependencies);
    this.#failures = new FailureLog(dependencies);
  }

  /**
   * Takes all lines of one call. `AppError("too_large")` beyond a limit; then nothing is stored or sent. Not
   * idempotent: the same lines in a second call are other records.
   */
  async take(principal: Principal, request: SentLinesRequest): Promise<SentLinesResult> {
    const { rule, subject, text, isMarked = false } = request;
    requireOneOf(principal, ["rules:write", "notifications:write"]);
    if (rule !== undefined && subject === undefined) return this.#store(principal, { ...request, rule });
    if (subject !== undefined && isMarked)
      throw new AppError("invalid", "malformed=mark is for lines of a rule: lines to a channel have no marks.");
    if (subject !== undefined && rule === undefined) return this.#tell(principal, subject, text);
    throw new AppError("invalid", "Give either rule, the key of the rule for the lines, or subject, their channel.");
  }

  async #store(
    principal: Principal,
    { rule: key, text, isMarked, malformed, signal }: SentLinesRequest & { readonly rule: string },
  ): Promise<LinesResult> {
    requirePermission(principal, "rules:write");
    const { rules, clock, random } = this.#with;
    const source = principal.user;
    return this.#failures.of(principal, { rule: key, source }, async (failures) => {
      const rule = await rules.load(principal, key);
      if (isMarked === true) await this.#requireMarks(principal, rule);
      const lines = linesOf(text, endOfLines(rule));
      const marks = malformed && (await LineMarks.of(text, malformed));
      for (const [at, line] of lines.entries()) checkLine(line, at + 1, marks?.bytesOf(at + 1));
      const identity = `sent/${Buffer.from(random.bytes(IDENTITY_BYTES)).toString("hex")}`;
      const of = {
        principal,
        rule,
        source,
        timeMs: clock.nowMs(),
        identity,
        isOrdered: true as const,
        marks,
        failures,
        signal,
      };
      return (await this.#lines.store(of, pieces(lines))).result;
    });
  }

  /**
   * `AppError("invalid")` if the rule makes no records but only objects, which have no marks. A body, or a rule that
   * gets the records, may choose a class of records, so such rules pass.
   */
  async #requireMarks(principal: Principal, { class: path, body, forwardTo }: Rule): Promise<void> {
    if (body !== undefined || forwardTo.length > 0) return;
    const view = (await this.#with.objects.catalog(principal)).get(path);
    if (view === undefined || view.kind === "record") return;
    const message = `malformed=mark marks records, and ${path} is a class of objects, which have no marks. Send such lines to a rule for a class of records, or mend their bytes.`;
    throw new AppError("invalid", message);
  }

  #tell(principal: Principal, subject: string, text: string): SentLinesResult {
    requireSending(principal, subject);
    const frames = framesOf(text);
    for (const msg of frames)
      sendFrame(this.#with.notifications, principal, { source: principal.user, subject, title: "", msg });
    return { frames: frames.length };
  }
}

/**
 * Lines without their ends. There is no empty line after the last line end. `AppError("too_large")` beyond
 * `SENT_LINES_MAX`.
 */
function linesOf(text: string, end = /\r?\n/): readonly string[] {
  // Room for one line too many and the empty text after its end. More parts are not needed to refuse the text.
  const lines = text.split(end, SENT_LINES_MAX + 2);
  if (lines.at(-1) === "") lines.pop();
  if (lines.length > SENT_LINES_MAX)
    throw tooMuch(`One call takes at most ${SENT_LINES_MAX} lines.`, { limit: "SENT_LINES_MAX" });
  return lines;
}

/**
 * Lines as frames, without blank ones. `AppError("too_large")` beyond a limit. The limits are so low that a receiver
 * that keeps reading is not disconnected as too slow.
 */
function framesOf(text: string): readonly string[] {
  const frames = linesOf(text).flatMap((line, at) => {
    if (line.length > SCRIPT_MESSAGE_MAX_CHARACTERS)
      throw tooMuch(`Line ${at + 1}: a frame has at most ${SCRIPT_MESSAGE_MAX_CHARACTERS} characters.`, {
        limit: "SCRIPT_MESSAGE_MAX_CHARACTERS",
      });
    return line.trim() === "" ? [] : [line];
  });
  if (frames.length > SENT_FRAMES_MAX)
    throw tooMuch(`One call sends at most ${SENT_FRAMES_MAX} lines to a channel.`, { limit: "SENT_FRAMES_MAX" });
  const characters = frames.reduce((sum, { length }) => sum + length, 0);
  if (characters > SENT_FRAMES_MAX_CHARACTERS)
    throw tooMuch(`One call sends at most ${SENT_FRAMES_MAX_CHARACTERS} characters to a channel.`, {
      limit: "SENT_FRAMES_MAX_CHARACTERS",
    });
  return frames;
}

/** `sentBytes`: number of bytes of a malformed line as sent. Its text has three bytes for each malformed character. */
function checkLine(line: string, number: number, sentBytes: number | undefined): void {
  const bytes = sentBytes ?? (line.length > RECORD_MAX_BYTES ? line.length : Buffer.byteLength(line));
  if (bytes > RECORD_MAX_BYTES)
    throw tooMuch(`Line ${number} has more than ${RECORD_MAX_BYTES} bytes.`, { limit: "RECORD_MAX_BYTES" });
}

function* pieces(lines: readonly string[]): Generator<readonly string[]> {
  for (let at = 0; at < lines.length; at += CHANGE_BATCH_MAX) yield lines.slice(at, at + CHANGE_BATCH_MAX);
}

function tooMuch(message: string, details: { readonly limit: string }): AppError {
  return new AppError("too_large", `${message} Nothing of it was taken.`, { details });
}
