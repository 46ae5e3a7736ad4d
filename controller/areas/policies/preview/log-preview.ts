import { policyEncoding } from "../../../../common/agent/policy-encoding.ts";
import { policyHeading } from "../../../../common/agent/policy-heading.ts";
import { decodedRecord } from "../../../../common/agent/raw-records.ts";
import { compileCutter } from "../../../../common/agent/records.ts";
import type { LogPolicySpec } from "../../../../common/api/policies.ts";
import { AppError } from "../../../../common/errors.ts";
import {
  POLICY_PREVIEW_FILES_MAX,
  POLICY_PREVIEW_OUTPUT_MAX_BYTES,
  POLICY_PREVIEW_TAIL_BYTES,
} from "../../../../common/limits.ts";
import { compilePattern } from "../../../../common/regex/pattern.ts";
import { UTF8 } from "../../../../common/text/encodings.ts";
import { quoted } from "../../hosts/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { readHost, type HostReadingParts } from "./host-reading.ts";
import type { PreviewRead, PreviewReading } from "./types.ts";

interface FoundFile {
  /** Path below the policy's folder. */
  readonly path: string;
  readonly groups: Readonly<Record<string, string>>;
}

/**
 * Reads the newest records of the file that matches a log policy and was changed last. The host needs a POSIX shell. The
 * marks of an agent that follows the file are neither read nor changed. `AppError("unsupported")` for a packed file.
 */
export async function readLog(
  principal: Principal,
  parts: HostReadingParts,
  reading: PreviewReading<LogPolicySpec>,
): Promise<PreviewRead> {
  const { spec, host } = reading;
  const listed = await read(principal, parts, { ...reading, line: listingOf(spec.dir) });
  if (listed.code !== 0)
    throw new AppError("unavailable", `The files of ${spec.dir} on ${host} cannot be listed: ${listed.errors}`);
  const file = newest(spec, String(listed.bytes).split("\n"));
  if (file === undefined) {
    const warnings = [`No file of ${spec.dir} on ${host} matches ${spec.match}.`];
    return { ...listed, source: "", records: [], warnings };
  }
  const source = `${spec.dir.replace(/\/+$/, "")}/${file.path}`;
  if (/\.(gz|bz2|xz|zst)$/.test(source))
    throw new AppError("unsupported", `The newest file that matches is packed, and a preview reads none: ${source}`);
  const line = `tail -c ${POLICY_PREVIEW_TAIL_BYTES} < ${quoted(source)}`;
  const end = await read(principal, parts, { ...reading, line });
  if (end.code !== 0) throw new AppError("unavailable", `${source} on ${host} cannot be read: ${end.errors}`);
  return { ...end, source, ...recordsOf(reading, file, end.bytes) };
}

/** Paths below the folder, the file that was changed last first. */
function listingOf(dir: string): string {
  const files = "find . -type f -exec ls -t -- {} +";
  return `cd -- ${quoted(dir)} && ${files} | head -n ${POLICY_PREVIEW_FILES_MAX}`;
}

function newest({ match }: LogPolicySpec, paths: readonly string[]): FoundFile | undefined {
  const pattern = compilePattern(match);
  for (const line of paths) {
    const path = line.replace(/^\.\//, "");
    const found = path === "" || !pattern.fits(path) ? undefined : pattern.exec(path);
    if (found) return { path, groups: found.groups };
  }
  return undefined;
}

async function read(
  principal: Principal,
  parts: HostReadingParts,
  { host, line, signal }: PreviewReading<LogPolicySpec> & { readonly line: string },
) {
  const pieces: Uint8Array[] = [];
  let length = 0;
  const take = (data: Uint8Array): boolean => {
    pieces.push(new Uint8Array(data));
    length += data.length;
    return length < POLICY_PREVIEW_OUTPUT_MAX_BYTES;
  };
  const result = await readHost(principal, parts, { host, command: { kind: "exec", line }, signal, take });
  if (result.state === "timeout") throw new AppError("deadline", `The log on ${host} could not be read in time.`);
  return { ...result, bytes: Buffer.concat(pieces) };
}

function recordsOf(
  { spec, count }: PreviewReading<LogPolicySpec>,
  { groups }: FoundFile,
  bytes: Buffer,
): Pick<PreviewRead, "records" | "warnings"> {
  const encoding = policyEncoding(spec);
  const { pieces } = compileCutter({ ...spec, encoding }).cut(bytes, { final: true });
  const isWhole = bytes.length < POLICY_PREVIEW_TAIL_BYTES;
  const heading = policyHeading(spec);
  const filter = spec.matchregexp ? compilePattern(spec.matchregexp) : undefined;
  const found: { readonly text: string; readonly heading?: string }[] = [];
  let named: string | undefined;
  // The first record of a file that was not read whole may lack its beginning.
  for (const [at, { start, end, cut }] of pieces.slice(isWhole ? 0 : 1).entries()) {
    const piece = { bytes: bytes.subarray(start, end), offset: start, cut };
    const text = Buffer.from(decodedRecord(piece, { encoding: encoding ?? UTF8 }).bytes).toString("utf8");
    if (heading.matches(text) || (heading.isFirst && isWhole && at === 0)) named = text;
    else if (filter === undefined || (filter.fits(text) && filter.test(text)))
      found.push({ text, ...(named !== undefined && { heading: named }) });
  }
  const records = found.slice(-count).map((one) => ({ ...one, groups }));
  return { records, warnings: warningsOf(spec, { isWhole, hasHeading: named !== undefined }) };
}

function warningsOf(
  { attrs }: LogPolicySpec,
  { isWhole, hasHeading }: { readonly isWhole: boolean; readonly hasHeading: boolean },
): readonly string[] {
  if (isWhole) return [];
  const part = `Only the last ${POLICY_PREVIEW_TAIL_BYTES} bytes of the file were read`;
  const isNamed = hasHeading || attrs?.["heading"] === undefined;
  return [isNamed ? `${part}.` : `${part}, and they have no heading line that names the columns.`];
}
