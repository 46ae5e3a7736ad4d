import type { TSchema } from "typebox";

/** The parts of a schema that decide how text becomes a value, and which members of an answer are sent. */
export interface Shape {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly patternProperties?: Readonly<Record<string, TSchema>>;
  readonly additionalProperties?: unknown;
  readonly items?: unknown;
  readonly anyOf?: readonly TSchema[];
  readonly default?: unknown;
}
