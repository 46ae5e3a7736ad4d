import { CLASSES, CONDITIONS, IDS, WORD, type Draw } from "./names.ts";

/** Draws a text of one shape. */
type Shape = (draw: Draw) => string;

const COLUMNS = [
  "note",
  "hushed",
  "code",
  "id",
  "*",
  "remark",
  "domain",
  "leads",
  "leads.note",
  "leads.hushed",
  "max(hushed)",
  "count(*)",
  "count(distinct note)",
  "upper(hushed)",
  "coalesce(hushed, note) as told",
  "top(note, 3)",
  `case when note like '%${WORD}%' then note end as told`,
] as const;
const AGGREGATES = [
  "count(*)",
  "count(hushed)",
  "max(note)",
  "min(hushed)",
  "sum(size)",
  "avg(size)",
  "top(note, 5)",
  "count(distinct note)",
];
const ORDERS = ["hushed", "note", "id", "leads.note", "size", "coalesce(hushed, note)"] as const;
const ENDS = ["", ":vault", '"vault:closed"', '"vault:open"', '"vault:ajar"', ":shut", '"shut:a"'] as const;
const STEPS = ["-[]->", "-[:leads]->", "<-[]-", "-[*]->", "-[*]-", "-[]-"] as const;
const TIMES = ["2020-01-01", "2025-01-01 12:00:00", "2099-01-01"] as const;

const from: Shape = (draw) => draw(CLASSES);
const where: Shape = (draw) => draw(CONDITIONS);
const column: Shape = (draw) => draw(COLUMNS);

/** MQL statements by their shape, which tell hidden data to a caller who may see it. All shapes are drawn equally often. */
export const STATEMENTS: Readonly<Record<string, Shape>> = {
  select: (draw) => `select ${column(draw)} from ${from(draw)}`,
  condition: (draw) => `select ${column(draw)} from ${from(draw)} where ${where(draw)}`,
  either: (draw) => `select ${column(draw)} from ${from(draw)} where ${where(draw)} or ${where(draw)}`,
  order: (draw) =>
    `select ${column(draw)}, code from ${from(draw)} order by ${draw(ORDERS)} ${draw(["asc", "desc"])} limit ${draw(["1", "5"])}`,
  group: (draw) => `select ${draw(ORDERS)} as g, ${draw(AGGREGATES)} as n from ${from(draw)} group by g`,
  having: (draw) =>
    `select note, ${draw(AGGREGATES)} as n from ${from(draw)} group by note having ${draw(["max(hushed) > 'a'", "count(*) > 0", "max(length(hushed)) > 1", `max(note) like '%${WORD}%'`])}`,
  count: (draw) => `select ${draw(AGGREGATES)} as n from ${from(draw)} where ${where(draw)}`,
  distinct: (draw) => `select distinct ${draw(["note", "hushed", "owner"])} from ${from(draw)}`,
  join: (draw) =>
    `select a.*, b.* from ${from(draw)} a ${draw(["", "left "])}join (b:${from(draw)}) on a.code=b.code where ${draw(["a.", "b."])}${draw(["code='closed'", "hushed is not null", "note like '%'"])}`,
  "join by hidden": (draw) =>
    `select a.code, b.note from ${from(draw)} a left join (b:${from(draw)}) on a.${draw(["code", "hushed", "owner"])}=b.${draw(["code", "hushed", "owner"])}`,
  "sub-select": (draw) =>
    `select code from ${from(draw)} where ${draw(["code", "note", "id"])} ${draw(["in", "not in"])} (select ${column(draw)} from ${from(draw)} where ${where(draw)})`,
  "found by sub-select": (draw) =>
    `select code, case when owner in (select owner from ${from(draw)} where ${where(draw)}) then 1 else 2 end as n from ${from(draw)}`,
  derived: (draw) => `select * from (select ${column(draw)}, code from ${from(draw)}) x where x.code='closed'`,
  window: (draw) =>
    `select code, ${draw(["lag(hushed)", "lead(note)", "row_number()", "sum(length(hushed))", "count(*)"])} over (partition by ${draw(["code", "hushed", "size"])} order by ${draw(ORDERS)}) as w from ${from(draw)}`,
  union: (draw) =>
    `select ${column(draw)} from ${from(draw)} union ${draw(["", "all "])}select note from ${from(draw)}`,
  "as of": (draw) => `select ${column(draw)} from ${from(draw)} as of '${draw(TIMES)}'`,
  "condition as of": (draw) => `select ${column(draw)} from ${from(draw)} where ${where(draw)} as of '${draw(TIMES)}'`,
  page: (draw) =>
    `select ${column(draw)} from ${from(draw)} order by ${draw(["id", "note", "hushed"])} limit 1 cursor ''`,
  explain: (draw) => `explain ${draw(["", "analyze "])}select ${column(draw)} from ${from(draw)} where ${where(draw)}`,
  "explain match": (draw) => `explain match (${draw(ENDS)})${draw(STEPS)}(${draw(ENDS)})`,
  match: (draw) => `match (${draw(ENDS)})${draw(STEPS)}(${draw(ENDS)})${draw(["", " return note, code"])}`,
  "match of condition": (draw) =>
    `match (:/matrix/vault where ${where(draw)})${draw(STEPS)}() return ${draw(["note", "hushed", "code"])}`,
  "match of times": (draw) =>
    `match (${draw(ENDS)})${draw(STEPS)}(${draw(ENDS)}) ${draw(["as of", "diff"])} '${draw(TIMES)}'`,
  paths: (draw) =>
    `match ${draw(["all", "long", "short", "detail", "back"])} path (a:${draw(['"vault:open"', "vault", '"vault:ajar"'])})-[*]->(b:${draw(['"vault:closed"', '"vault:ajar"', "vault", '"shut:a"'])}) return note`,
  "path of names": (draw) => `match (a:vault)${draw(STEPS)}(b) where ${draw(["a", "b"])}.${where(draw)} path a, b`,
  until: (draw) => `match ("vault:open")-[*]->() until "vault:${draw(["closed", "ajar", "*"])}" return note`,
  update: (draw) => `update /matrix/vault note=${draw(["'x'", "hushed", "leads.note"])} where ${where(draw)}`,
  relate: (draw) =>
    `update /matrix/vault set leads=${draw(["", "leads + ", "leads - "])}'${draw(IDS)}' where ${where(draw)}`,
  convert: (draw) => `update /matrix/vault set size=${draw(["hushed", "leads.note", "note"])} where ${where(draw)}`,
  "insert into shut": (draw) =>
    `insert into ${draw(["/matrix/shut", "/second/vault"])} code='${draw(["a", "theirs"])}', note='x'`,
  delete: (draw) => `delete from ${from(draw)} where ${draw(["code='closed'", "code='nothing'", "id='vault:closed'"])}`,
  "delete by hidden": (draw) =>
    `delete from /matrix/vault where code='open' and ${draw(["hushed='x'", `hushed like '%${WORD}%'`])}`,
  // These fail for some values, so the text of the error must not depend on a hidden one.
  failing: (draw) =>
    draw([
      "select code from /matrix/vault where regexp_match('x', note)",
      "select regexp_extract('x', hushed) from /matrix/vault order by code",
      "select code from /matrix/vault where regexp_match(code, leads.note)",
      "select cast(note as int) as n from /matrix/vault",
      `select code from /matrix/vault where note match '${WORD}' and regexp_match(code, note)`,
      "select code, nothing from /matrix/shut",
      "select code from /matrix/vault where hushed = 5 and",
      "insert into /matrix/vault code='open', size='many', hushed='x'",
    ]),
};

/** Statements whose answers tell nothing. The data that they must not change is compared at the end. */
export const CHANGES: Readonly<Record<string, Shape>> = {
  rename: (draw) => `update /matrix/vault code='${draw(["closed", "open"])}'`,
  insert: (draw) => `insert into /matrix/vault code='${draw(["closed", "new"])}', note='x'`,
  "insert json": (draw) => `insert json '{"class":"/matrix/vault","code":"${draw(["closed", "new"])}","note":"x"}'`,
  "create class": (draw) =>
    `create class ${draw(["/matrix/vault", "/matrix", "/second"])}/own (code varchar, keys(code))`,
  "alter class": (draw) =>
    `alter class ${draw(["/matrix/vault", "/matrix/shut"])} ${draw(["drop column hushed", "add column more varchar"])}`,
  batch: () => `begin insert into /matrix/vault code='closed', note='x' end`,
};

const ALL = [...Object.values(STATEMENTS), ...Object.values(CHANGES)];

export function statement(draw: Draw): string {
  return draw(ALL)(draw);
}

const MATCH_SHAPES = Object.entries(STATEMENTS).flatMap(([name, shape]) =>
  /^(match|path|until)/.test(name) ? [shape] : [],
);

export function matchStatement(draw: Draw): string {
  return draw(MATCH_SHAPES)(draw);
}

const HASH = ["#", ""] as const;

/** Searches by their shape. */
export const SEARCHES: Readonly<Record<string, Shape>> = {
  word: (draw) =>
    `${draw(HASH)}${from(draw)}: | ${draw(["closed", "a", "x*", WORD, `${WORD.slice(0, 4)}*`, "plain", "*isp*"])}`,
  "word anywhere": (draw) => `${draw(HASH)} ${draw([WORD, "closed", `plain;${WORD}`, "x*"])}`,
  field: (draw) =>
    `#${from(draw)}: | ${draw(["code=closed", "hushed=x*", "hushed=*", `note=*${WORD}*`, "size=7777", "leads.note=x*"])}`,
  facet: (draw) =>
    `#${from(draw)}: | ${draw(["group", "uniq"])} ${draw(["hushed", "note", "owner", "code, owner", "leads.note"])}`,
  sort: (draw) => `#${from(draw)}: | sort ${draw(["hushed", "note desc"])} | top ${draw(["1", "5"])}`,
  print: (draw) => `#${from(draw)}: | print ${draw(["hushed, note", "code, leads.note", "note as s"])}`,
  time: (draw) =>
    `${from(draw)}: | ${draw(["at 2025-01-01 12:00:00", "last 2 year", "today", "window 2024-12-31 to 2025-02-01"])}`,
  graph: (draw) =>
    `#${from(draw)}: | call ${draw(["graph", 'graph {"type":"leads"}', 'tree {"fields":["note"]}', "tree"])}`,
  plan: (draw) => `debug> #${from(draw)}: | ${draw([WORD, "code=closed", "hushed=x*", "owner=theirs"])}`,
  delete: (draw) => `#/matrix/vault: | ${draw(["code=closed", `${WORD}`, "hushed=x*"])} | delete`,
};

export function searchText(draw: Draw): string {
  return draw(Object.values(SEARCHES))(draw);
}
