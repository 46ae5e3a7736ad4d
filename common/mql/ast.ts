/** The syntax tree: plain readonly nodes. `span`: position of a node in the text in UTF-16 units, end excluded. */

export interface Span {
  readonly start: number;
  readonly end: number;
}

interface At {
  readonly span: Span;
}

export interface Script extends At {
  readonly kind: "script";
  readonly statements: readonly Statement[];
  /** Number of `?` placeholders. */
  readonly placeholders: number;
}

export type Statement =
  | Select
  | Union
  | SelectEdgeTypes
  | Insert
  | InsertJson
  | Update
  | Delete
  | CreateClass
  | DropClass
  | AlterClass
  | CreateEdgeType
  | DropEdgeType
  | Match
  | Batch
  | Explain;

// Values

export type ValueNode = TextNode | NumberNode | ConstantNode | ListNode | MapNode | Placeholder;

export interface TextNode extends At {
  readonly kind: "text";
  readonly value: string;
}

export interface NumberNode extends At {
  readonly kind: "number";
  /** As written, with a `-` if negative, because integers may exceed the range of a double. */
  readonly text: string;
}

export interface ConstantNode extends At {
  readonly kind: "constant";
  readonly value: boolean | null;
}

export interface ListNode extends At {
  readonly kind: "list";
  readonly items: readonly ValueNode[];
}

export interface MapNode extends At {
  readonly kind: "map";
  readonly entries: readonly MapEntry[];
}

export interface MapEntry extends At {
  readonly kind: "entry";
  readonly key: string;
  readonly value: ValueNode;
}

export interface Placeholder extends At {
  readonly kind: "placeholder";
  /** Index in the whole script, from 0. */
  readonly index: number;
}

// Fields and conditions

export interface Field extends At {
  readonly kind: "field";
  /** A column, or an alias and a column; further parts are members of a map. */
  readonly parts: readonly string[];
  /** For a time series: only the points in this window, as in `load['2026-01-01':'2026-01-02']`. */
  readonly window?: TimeWindow;
}

export interface TimeWindow extends At {
  readonly kind: "window";
  /** Inclusive; absent: from the beginning. */
  readonly from: ValueNode | undefined;
  /** Exclusive; absent: to the end. */
  readonly to: ValueNode | undefined;
}

export interface Call extends At {
  readonly kind: "call";
  /** In lower case. */
  readonly name: string;
  readonly distinct: boolean;
  /** Absent for `*`. */
  readonly argument: Field | Expression | undefined;
  /** Step width of a time series, as in `avg(load, '5 minute')`, or another parameter of the aggregate. */
  readonly step?: ValueNode;
}

/** A value computed from others with an operator or a function: `size * 2`, `lower(name)`, `cast(size AS text)`. */
export interface Computed extends At {
  readonly kind: "computed";
  /** `+ - * / ||`, or the function's name in lower case. */
  readonly name: string;
  readonly operands: readonly Operand[];
  /** Zone for a calendar function that names none. Set before the function runs; never printed. */
  readonly zone?: string;
}

/** `CASE WHEN a > 1 THEN 'many' ELSE 'few' END`. */
export interface Case extends At {
  readonly kind: "case";
  readonly branches: readonly Branch[];
  readonly otherwise: Operand | undefined;
}

export interface Branch {
  readonly when: Condition;
  readonly then: Operand;
}

/** A condition used as a value; null if it is unknown. */
export interface Truth extends At {
  readonly kind: "truth";
  readonly condition: Condition;
}

export type Expression = Computed | Case | Truth;
export type Operand = Field | Call | ValueNode | Expression;
export type CompareOperator = "=" | "!=" | ">" | "<" | ">=" | "<=";
export type TextOperator = "MATCH" | "PHRASE" | "PREFIX" | "FUZZY";

export type Condition =
  | And
  | Or
  | Not
  | Compare
  | Relate
  | In
  | InSelect
  | Like
  | Between
  | IsNull
  | Contains
  | TextMatch;

export interface And extends At {
  readonly kind: "and";
  readonly items: readonly Condition[];
}

export interface Or extends At {
  readonly kind: "or";
  readonly items: readonly Condition[];
}

export interface Not extends At {
  readonly kind: "not";
  readonly operand: Condition;
}

export interface Compare extends At {
  readonly kind: "compare";
  readonly operator: CompareOperator;
  readonly left: Operand;
  readonly right: ValueNode;
}

/** A comparison with a value that depends on the row: `a > b * 2`. */
export interface Relate extends At {
  readonly kind: "relate";
  readonly operator: CompareOperator;
  readonly left: Operand;
  readonly right: Operand;
}

export interface In extends At {
  readonly kind: "in";
  readonly operand: Operand;
  /** Values, or one placeholder or list that represents all of them. */
  readonly values: readonly ValueNode[];
  /** The SELECT that returned the values. Values that the operand can never equal are ignored. */
  readonly foundBy?: Select;
  readonly negated: boolean;
}

/** `f IN (SELECT g FROM …)`: allowed in any condition of a statement, but not in a separate condition. */
export interface InSelect extends At {
  readonly kind: "inSelect";
  readonly operand: Operand;
  readonly select: Select;
  readonly negated: boolean;
}

export interface Like extends At {
  readonly kind: "like";
  readonly operand: Operand;
  readonly pattern: ValueNode;
  readonly negated: boolean;
}

export interface Between extends At {
  readonly kind: "between";
  readonly operand: Operand;
  readonly low: ValueNode;
  readonly high: ValueNode;
  readonly negated: boolean;
}

export interface IsNull extends At {
  readonly kind: "isNull";
  readonly operand: Operand;
  readonly negated: boolean;
}

export interface Contains extends At {
  readonly kind: "contains";
  readonly operand: Operand;
  readonly value: ValueNode;
  readonly negated: boolean;
}

export interface TextMatch extends At {
  readonly kind: "textMatch";
  readonly operator: TextOperator;
  readonly operand: Operand;
  readonly value: ValueNode;
  readonly negated: boolean;
}

// Reading

export interface ClassRef extends At {
  readonly kind: "class";
  /** Without a trailing slash, except `/` itself. */
  readonly path: string;
  /** True if written with a trailing slash: the class and all its subclasses. */
  readonly subtree: boolean;
  readonly alias: string | undefined;
}

/** `(SELECT …) alias`: its result, queried like the objects of a class. */
export interface SelectRef extends At {
  readonly kind: "selected";
  readonly select: Select | Union;
  readonly alias: string | undefined;
}

export type Source = ClassRef | SelectRef;
export type SelectItem = Star | Item | WindowItem;

export interface Star extends At {
  readonly kind: "star";
  /** `a.*`: all columns of one of the classes. */
  readonly alias: string | undefined;
}

export interface Item extends At {
  readonly kind: "item";
  readonly value: Operand;
  readonly alias: string | undefined;
}

/** `lag(n, 1) OVER (PARTITION BY host ORDER BY at)`: a value computed from a row and its neighbours. */
export interface WindowItem extends At {
  readonly kind: "window";
  /** In lower case. */
  readonly name: string;
  /** Empty for `count(*)`. */
  readonly operands: readonly Operand[];
  readonly partitionBy: readonly Operand[];
  readonly orderBy: readonly OrderItem[];
  readonly alias: string | undefined;
}

/** `FILL (0)` after GROUP BY: time steps without rows are returned too, with this value for the aggregates. */
export interface Fill extends At {
  readonly kind: "fill";
  readonly value: NumberNode | ConstantNode | "previous";
}

export interface Join extends At {
  readonly kind: "join";
  /** LEFT JOIN: rows without a partner are kept. */
  readonly outer: boolean;
  readonly class: Source;
  readonly left: Field;
  readonly right: Field;
}

export interface OrderItem extends At {
  readonly kind: "order";
  readonly value: Operand;
  readonly descending: boolean;
}

export type Count = NumberNode | Placeholder;

/** Order and window of a result. */
export interface Tail {
  readonly orderBy: readonly OrderItem[];
  readonly limit: Count | undefined;
  readonly offset: Count | undefined;
  /** End of the previous page, as its answer gave it; an empty text for the first page. */
  readonly cursor: TextNode | Placeholder | undefined;
}

export interface Select extends At, Tail {
  readonly kind: "select";
  readonly distinct: boolean;
  readonly items: readonly SelectItem[];
  readonly from: Source;
  readonly joins: readonly Join[];
  readonly asOf: ValueNode | undefined;
  readonly where: Condition | undefined;
  readonly groupBy: readonly Operand[];
  readonly fill?: Fill | undefined;
  readonly having: Condition | undefined;
}

/** Order, limit and cursor belong to the whole union; its parts have none. */
export interface Union extends At, Tail {
  readonly kind: "union";
  readonly all: boolean;
  readonly selects: readonly Select[];
  /** Applies to the parts that name no time of their own. */
  readonly asOf: ValueNode | undefined;
}

export interface SelectEdgeTypes extends At {
  readonly kind: "selectEdgeTypes";
}

// Writing

export interface Insert extends At {
  readonly kind: "insert";
  readonly class: ClassRef;
  readonly form: "set" | "values";
  readonly columns: readonly string[];
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

// Graph

export interface Match extends At {
  readonly kind: "match";
  readonly chains: readonly Chain[];
  /** Condition on named nodes, `m.size > 1`; on the start nodes if no name is given. */
  readonly where: Condition | undefined;
  readonly pathMode: PathMode | undefined;
  /** Tags listed after `path`. */
  readonly pathTags: readonly string[];
  readonly returns: readonly string[];
  readonly until: string | undefined;
  readonly diff: ValueNode | undefined;
  readonly asOf: ValueNode | undefined;
}

export type PathMode = "short" | "long" | "all" | "detail" | "back" | "any";

export interface Chain extends At {
  readonly kind: "chain";
  readonly start: GraphNode;
  readonly steps: readonly GraphStep[];
}

export interface GraphStep extends At {
  readonly kind: "step";
  readonly direction: "out" | "in" | "both";
  /** Absent: edges of any type. */
  readonly type: string | undefined;
  /** Maximum number of steps; `any`: unlimited. */
  readonly depth: number | "any";
  readonly node: GraphNode;
}

export interface GraphNode extends At {
  readonly kind: "node";
  readonly name: string | undefined;
  /** Ids, or patterns for ids. */
  readonly ids: readonly string[];
  /** A path, with a trailing slash if it includes subclasses, or the last component of a path. */
  readonly class: string | undefined;
  readonly where: Condition | undefined;
  readonly limit: Count | undefined;
}

// Around statements

export interface Batch extends At {
  readonly kind: "batch";
  readonly statements: readonly Statement[];
}

export interface Explain extends At {
  readonly kind: "explain";
  /** True: runs the statement and reports its reads and its duration. */
  readonly analyzes: boolean;
  readonly statement: Statement;
}
