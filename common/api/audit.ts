import { Type } from "typebox";

/** Schemas of `/audit`. */

export const AuditReport = Type.Object({
  entries: Type.Integer(),
  runs: Type.Integer(),
  /** Entries of earlier versions. Their hash needs no key, so they prove nothing. */
  unkeyed: Type.Integer(),
  /** What does not hold; empty for a sound trail. */
  problems: Type.Array(Type.String()),
});
