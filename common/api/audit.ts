import { Type, type Static } from "typebox";
import { AUDIT_ANCHORS_GIVEN_MAX } from "../limits.ts";

/** Schemas of `/audit`. */

export const AuditBreak = Type.Object({
  kind: Type.String({
    description:
      "altered: its content was changed; missing: entries were taken out; doubled, reordered: put in or moved; unknown_key: made with a key that the key file lacks; " +
      "truncated: the end was cut off; replaced: written anew with the key; unkeyed: a digest that needs no key where all have one; " +
      "added: an earlier run that was not there; heads: the sealed heads were changed, removed or put back",
  }),
  run: Type.String({ description: "one run of one controller; empty: the sealed heads of all" }),
  sequence: Type.Integer({
    description: "its number in the run; of entries that are gone the first; of heads their version",
  }),
  timeMs: Type.Number({ description: "milliseconds since 1970" }),
  text: Type.String(),
});

export const AuditReport = Type.Object({
  entries: Type.Integer(),
  runs: Type.Integer(),
  /** Entries of earlier versions. Their hash needs no key, so they prove nothing. */
  unkeyed: Type.Integer(),
  uncovered: Type.Integer({
    description: "entries that no sealed head names: of the last minute, and of controllers that were killed",
  }),
  beforeHeads: Type.Integer({ description: "entries of runs that earlier versions made, without sealed heads" }),
  anchors: Type.Integer({ description: "runs that were compared with what is kept of them outside the store" }),
  anchorFault: Type.Optional(
    Type.String({ description: "why digests are not, or cannot be read, outside the store; absent: they are" }),
  ),
  first: Type.Optional(AuditBreak),
  /** Faults of the trail, oldest first; empty if it is sound. */
  problems: Type.Array(Type.String()),
  /** Changes that this verification cannot detect. */
  notes: Type.Array(Type.String({ description: "what this verification cannot notice, in words" })),
});
export type AuditReport = Static<typeof AuditReport>;

const LineError = Type.Object(
  { error: Type.Object({ code: Type.String(), message: Type.String() }) },
  { description: "the last line, when it broke off" },
);

/** A line of a streamed verification. */
export const AuditProgressLine = Type.Union([
  Type.Object({ entries: Type.Integer({ description: "read so far" }) }),
  Type.Object({ report: AuditReport }),
  LineError,
]);

/** A line of an export. */
export const AuditLine = Type.Union([
  Type.Object({
    tenant: Type.String(),
    user: Type.String(),
    permission: Type.String(),
    action: Type.String(),
    object: Type.String(),
    outcome: Type.String({ description: "ok, denied or failed" }),
    code: Type.String(),
    remote: Type.String(),
    traceparent: Type.String(),
    timeMs: Type.Number({ description: "milliseconds since 1970" }),
    run: Type.String(),
    sequence: Type.Integer(),
    previous: Type.String(),
    hash: Type.String(),
  }),
  Type.Object({ end: Type.Object({ entries: Type.Integer() }) }),
  LineError,
]);

const Stream = Type.Optional(
  Type.Boolean({ description: "lines of JSON: {entries} from time to time, at the end {report} or {error}" }),
);

export const AuditVerify = Type.Object({ stream: Stream });

export const AuditCompare = Type.Object({
  stream: Stream,
  anchors: Type.Array(Type.String({ maxLength: 1_000, description: "a line of an anchor file" }), {
    maxItems: AUDIT_ANCHORS_GIVEN_MAX,
  }),
});

const Time = (description: string) => Type.Optional(Type.Number({ description }));

export const AuditExport = Type.Object({
  from: Time("milliseconds since 1970: entries from then on"),
  to: Time("milliseconds since 1970: entries before"),
});
