import { Type, type Static } from "typebox";
import { AUDIT_ANCHORS_GIVEN_MAX } from "../limits.ts";

/** Schemas of `/audit`. */

export const AuditBreak = Type.Object(
  {
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
    text: Type.String({ description: "The fault in words" }),
  },
  { description: "A fault of the trail" },
);

export const AuditReport = Type.Object(
  {
    entries: Type.Integer({ description: "Entries that were read" }),
    runs: Type.Integer({ description: "Runs of controllers whose entries were read" }),
    unkeyed: Type.Integer({
      description: "Entries of earlier versions. Their hash needs no key, so they prove nothing",
    }),
    uncovered: Type.Integer({
      description: "entries that no sealed head names: of the last minute, and of controllers that were killed",
    }),
    beforeHeads: Type.Integer({ description: "entries of runs that earlier versions made, without sealed heads" }),
    anchors: Type.Integer({ description: "runs that were compared with what is kept of them outside the store" }),
    anchorFault: Type.Optional(
      Type.String({ description: "why digests are not, or cannot be read, outside the store; absent: they are" }),
    ),
    first: Type.Optional(AuditBreak),
    problems: Type.Array(Type.String(), { description: "Faults of the trail, oldest first; empty if it is sound" }),
    notes: Type.Array(Type.String({ description: "what this verification cannot notice, in words" }), {
      description: "Changes that this verification cannot detect",
    }),
  },
  { description: "Result of a verification" },
);
export type AuditReport = Static<typeof AuditReport>;

const LineError = Type.Object(
  {
    error: Type.Object(
      {
        code: Type.String({ description: "Code of the error" }),
        message: Type.String({ description: "Text of the error" }),
      },
      { description: "Why it broke off" },
    ),
  },
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
    tenant: Type.String({ description: "Name of the tenant" }),
    user: Type.String({ description: "User who acted; empty: a stranger" }),
    permission: Type.String({ description: "Permission that the act needs" }),
    action: Type.String({ description: "Method and path of the call, or the act in words, such as sign in" }),
    object: Type.String({ description: "Objects that it changed or tried to change, with commas; empty: see action" }),
    outcome: Type.String({ description: "ok, denied or failed" }),
    code: Type.String({ description: "Code of the error; ok or empty without one" }),
    remote: Type.String({ description: "Address of the caller" }),
    traceparent: Type.String({ description: "Trace id of the call" }),
    timeMs: Type.Number({ description: "milliseconds since 1970" }),
    run: Type.String({ description: "Run of the controller that wrote the entry" }),
    sequence: Type.Integer({ description: "Number of the entry in the run, from 1" }),
    previous: Type.String({ description: "Hash of the entry before" }),
    hash: Type.String({ description: "Hash of this entry and of the one before" }),
  }),
  Type.Object({
    end: Type.Object(
      { entries: Type.Integer({ description: "Number of all entries" }) },
      { description: "The last line of a complete export" },
    ),
  }),
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
    description: "Lines of anchor files that are compared with the trail",
  }),
});

const Time = (description: string) => Type.Optional(Type.Number({ description }));

export const AuditExport = Type.Object({
  from: Time("milliseconds since 1970: entries from then on"),
  to: Time("milliseconds since 1970: entries before"),
});
