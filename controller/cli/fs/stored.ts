import { Type, type Static } from "typebox";
import { Check } from "typebox/value";

const StoredState = Type.Object({
  format: Type.Literal(1),
  target: Type.String(),
  files: Type.Array(
    Type.Object({ path: Type.String(), digest: Type.String(), revision: Type.String(), local: Type.String() }),
  ),
  folders: Type.Array(Type.String()),
  sent: Type.Optional(Type.Array(Type.Object({ path: Type.String(), digest: Type.String() }))),
});

export type StoredState = Static<typeof StoredState>;

/** True for the content of a file with the state of a sync. */
export function isStored(value: unknown): value is StoredState {
  return Check(StoredState, value);
}
