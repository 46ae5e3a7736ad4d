import { createHash } from "node:crypto";
import { AppError } from "../../../../common/errors.ts";
import { CHANGE_BATCH_MAX, PARSE_FILE_MAX_BYTES, RECORD_MAX_BYTES } from "../../../../common/limits.ts";
import { encodingGiven, UTF8, type Encoding } from "../../../../common/text/encodings.ts";
import { refusing, TextStream } from "../../../../common/text/text-stream.ts";
import { requirePermission, type Principal } from "../../permissions/index.ts";
import { FailureLog, type LineFailures } from "./line-failures.ts";
import { endOfLines, RuleLines, type LinesDependencies, type LinesResult } from "./lines.ts";
import type { Rules } from "../types.ts";

/** Source of the files for `parsefile`. */
export interface FileSource {
  /**
   * Opens a file of the user space, or if there is none, of the system space. With `space` "system", only the latter.
   * `AppError("not_found")` if the file does not exist for this principal.
   */
  openServed(
    principal: Principal,
    name: { readonly path: string; readonly space: "user" | "system" },
  ): Promise<OpenFile>;
}

export interface OpenFile {
  /** SHA-256 of the content. */
  readonly digest: string;
  readonly size: number;
  /** Time of the records in the file, unless they have a time of their own. */
  readonly modifiedMs: number;
  readonly bytes: AsyncIterable<Uint8Array>;
}

export interface ParseFileRequest {
  readonly rule: string;
  readonly filename: string;
  readonly space: "user" | "system";
  /** Encoding of the file; UTF-8 when absent. */
  readonly encoding?: string | undefined;
  readonly signal: AbortSignal;
}

interface Dependencies extends LinesDependencies {
  readonly rules: Rules;
  readonly files: FileSource;
}

/**
 * Parses a file line by line and stores the records. The identity of a record is made of the file's content, its
 * encoding, the rule and the line number. So if the same file is parsed again by the same rule, the same rows are
 * written. Failures are in the console log of the rule.
 */
export class FileParser {
  readonly #dependencies: Dependencies;
  readonly #lines: RuleLines;
  readonly #failures: FailureLog;

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
    this.#lines = new RuleLines(dependencies);
    this.#failures = new FailureLog(dependencies);
  }

  /** `AppError("invalid")` if bytes are invalid in the encoding, or if all records of the file fail. */
  async parse(principal: Principal, request: ParseFileRequest): Promise<LinesResult> {
    requirePermission(principal, "rules:write");
    const { rule, filename: source } = request;
    return this.#failures.of(principal, { rule, source }, (failures) => this.#parse(principal, request, failures));
  }

  async #parse(
    principal: Principal,
    { filename, space, signal, ...request }: ParseFileRequest,
    failures: LineFailures,
  ): Promise<LinesResult> {
    const { rules, files } = this.#dependencies;
    const encoding = encodingGiven(request.encoding);
    const rule = await rules.load(principal, request.rule);
    const name = { path: filename, space };
    const file = await files.openServed(principal, name);
    if (file.size > PARSE_FILE_MAX_BYTES)
      throw new AppError("too_large", `A file to parse has at most ${PARSE_FILE_MAX_BYTES} bytes.`);
    // Reads the whole file first, so that nothing is stored of a file with invalid bytes.
    const text = { encoding, filename };
    await read(textOf((await files.openServed(principal, name)).bytes, text));
    const digest = createHash("sha256")
      .update([file.digest, rule.key, rule.digest, ...(encoding.kind === UTF8.kind ? [] : [encoding.name])].join("\n"))
      .digest("hex");
    const identity = `file/${digest}`;
    const of = {
      principal,
      rule,
      source: filename,
      timeMs: file.modifiedMs,
      identity,
      isWhole: true,
      failures,
      signal,
    };
    const { result, isAllFailed } = await this.#lines.store(of, batches(textOf(file.bytes, text), endOfLines(rule)));
    if (isAllFailed) throw allFailed(filename, rule.key, result);
    return result;
  }
}

function allFailed(filename: string, key: string, { failed, errors }: LinesResult): AppError {
  const [first] = errors;
  const why = first === undefined ? "" : ` Line ${first.line}: ${first.error}`;
  return new AppError(
    "invalid",
    `No record of ${filename} could be parsed and stored by the rule ${key}; ${failed} failed.${why}`,
    {
      details: { failed, errors },
    },
  );
}

/** Lines without their ends, in pieces of at most `CHANGE_BATCH_MAX` lines. */
async function* batches(text: AsyncIterable<string>, end: RegExp): AsyncGenerator<readonly string[]> {
  let rest = "";
  let lines: string[] = [];
  for await (const piece of text) {
    const parts = (rest + piece).split(end);
    rest = parts.pop() ?? "";
    if (rest.length > RECORD_MAX_BYTES)
      throw new AppError("too_large", `A line has more than ${RECORD_MAX_BYTES} bytes.`);
    for (const line of parts) {
      if (lines.push(line) < CHANGE_BATCH_MAX) continue;
      yield lines;
      lines = [];
    }
  }
  if (rest !== "") lines.push(rest);
  if (lines.length > 0) yield lines;
}

/** Decodes the bytes. `AppError("invalid")` for bytes that are invalid in the encoding. */
async function* textOf(
  bytes: AsyncIterable<Uint8Array>,
  { encoding, filename }: { readonly encoding: Encoding; readonly filename: string },
): AsyncGenerator<string> {
  const text = new TextStream(encoding, { refuse: refusing(filename) });
  for await (const chunk of bytes) yield text.take(chunk);
  yield text.end();
}

async function read(text: AsyncIterable<string>): Promise<void> {
  for await (const piece of text) void piece;
}
