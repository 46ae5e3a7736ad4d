import type { TSchema } from "typebox";

/** The parts of a schema that decide how text becomes a value. */
export interface Shape {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly patternProperties?: Readonly<Record<string, TSchema>>;
  readonly additionalProperties?: unknown;
  readonly items?: unknown;
  readonly anyOf?: readonly TSchema[];
  readonly default?: unknown;
}
