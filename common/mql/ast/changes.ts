import type {
  At,
  ClassRef,
  ValueNode,
  TextNode,
  Placeholder,
  Operand,
  Condition,
  Count,
  MapNode,
  Span,
} from "./reading.ts";

// Writing

export interface Insert extends At {
  readonly kind: "insert";
  readonly class: ClassRef;
  readonly form: "set" | "values";
  readonly columns: readonly string[];
  /** Places of the columns in the text; absent if the statement was not parsed. */
  readonly columnPlaces?: readonly Span[];
  readonly rows: readonly (readonly ValueNode[])[];
  /** Version time. */
  readonly at: ValueNode | undefined;
  /** Absent: an ordinary insert. */
  readonly past?: PastInsert | undefined;
}

/** `INSERT VERSION` inserts an earlier state of an object, `INSERT REMOVAL` a removal. The time is in `vtime`. */
export interface PastInsert {
  readonly kind: "version" | "removal";
  /** Time at which the object would have expired by the ttl of its class. */
  readonly until?: ValueNode | undefined;
  /** Relations that the write of the state added and removed: lists of ids by edge type. */
  readonly added?: ValueNode | undefined;
  readonly dropped?: ValueNode | undefined;
  /** Times at which removals of their targets removed relations that the write had added: times by id by edge type. */
  readonly lost?: ValueNode | undefined;
}

export interface InsertJson extends At {
  readonly kind: "insertJson";
  readonly json: TextNode | Placeholder;
}

export interface Assignment extends At {
  readonly kind: "assignment";
  readonly column: string;
  readonly operation: "set" | "add" | "take";
  /** A value; for `set` possibly an expression over the current object. */
  readonly value: Operand;
  /** Spelling of the column on the right side, as in `f = F + v`, if it differs in case. */
  readonly repeated?: string;
}

export interface Update extends At {
  readonly kind: "update";
  readonly class: ClassRef;
  readonly assignments: readonly Assignment[];
  readonly where: Condition | undefined;
  readonly refresh: boolean;
}

export interface Delete extends At {
  readonly kind: "delete";
  /** Clears only this column. */
  readonly column: string | undefined;
  readonly class: ClassRef;
  readonly where: Condition | undefined;
  readonly limit: Count | undefined;
  readonly withVersion: boolean;
}

// Definitions

export interface ColumnDefinition extends At {
  readonly kind: "column";
  readonly name: string;
  /** In lower case. */
  readonly type: string;
  readonly elements: readonly string[];
  /** Labels of `enum`, options of `bucket`. */
  readonly details: MapNode | undefined;
  readonly title: string | undefined;
}

export interface ClassOption extends At {
  readonly kind: "option";
  /** In lower case. */
  readonly name: string;
  readonly value: ValueNode;
  /** Unit word after a number, in lower case, as in `ttl=30 day`. */
  readonly unit: string | undefined;
}

export interface CreateClass extends At {
  readonly kind: "createClass";
  readonly ifNotExists: boolean;
  readonly class: ClassRef;
  readonly columns: readonly ColumnDefinition[];
  readonly keys: readonly string[];
  readonly indexes: readonly string[];
  readonly options: readonly ClassOption[];
}

export interface DropClass extends At {
  readonly kind: "dropClass";
  readonly ifExists: boolean;
  readonly class: ClassRef;
}

export type ClassAlteration =
  | { readonly kind: "addColumn"; readonly column: ColumnDefinition; readonly span: Span }
  | { readonly kind: "dropColumn" | "addKey" | "dropKey"; readonly name: string; readonly span: Span }
  | {
      readonly kind: "addIndex" | "dropIndex";
      readonly name: string;
      readonly type: string | undefined;
      readonly span: Span;
    }
  | { readonly kind: "setOptions"; readonly options: readonly ClassOption[]; readonly span: Span };

export interface AlterClass extends At {
  readonly kind: "alterClass";
  readonly class: ClassRef;
  readonly alteration: ClassAlteration;
}

export interface CreateEdgeType extends At {
  readonly kind: "createEdgeType";
  readonly ifNotExists: boolean;
  readonly name: string;
  readonly remedy: string | undefined;
}

export interface DropEdgeType extends At {
  readonly kind: "dropEdgeType";
  readonly ifExists: boolean;
  readonly name: string;
}
