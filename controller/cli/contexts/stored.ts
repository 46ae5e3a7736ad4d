import { Type, type Static } from "typebox";
import { Check } from "typebox/value";

const StoredContext = Type.Object({
  url: Type.String(),
  /** `<tenant>.<user>` */
  user: Type.String(),
  session: Type.Optional(Type.String()),
  token: Type.Optional(Type.String()),
});
const StoredContexts = Type.Object({
  format: Type.Literal(1),
  current: Type.Optional(Type.String()),
  contexts: Type.Record(Type.String(), StoredContext),
});

export type StoredContext = Static<typeof StoredContext>;

/** True for the content of a file of contexts. */
export function isStored(value: unknown): value is Static<typeof StoredContexts> {
  return Check(StoredContexts, value);
}
