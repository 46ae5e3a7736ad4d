import type { InjectOptions } from "fastify";
import type { Statement } from "../../common/mql/index.ts";
import type { Segment } from "../../common/search/index.ts";
import type { GroupContent } from "../../controller/areas/groups/index.ts";
import type { DataRule } from "../../controller/areas/permissions/index.ts";
import { PASSWORD } from "../helpers/http/http-app.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import { openWorld, type World, type WorldOptions } from "./world.ts";

/** Objects whose rows and columns data rules hide, users for every kind of rule, and texts that ask for hidden data. */

export const ENT = "/matrix/ent";
const PAST = "2025-01-01 12:00:00";

/**
 * Texts of every kind of statement in several spellings. A new kind does not compile without a text. They represent
 * reads and changes that return data.
 */
export const STATEMENTS: Readonly<Record<Statement["kind"], readonly string[]>> = {
  select: [
    `select * from ${ENT}/`,
    "select * from /matrix/",
    `select id, note, size from ${ENT}/box limit 1 cursor ''`,
    `select note, count(*) from ${ENT}/box group by note`,
    `select distinct owner from ${ENT}/box order by owner`,
    `select max(note), min(note), count(*), sum(size), avg(size) from ${ENT}/box`,
    `select * from ${ENT}/box a join ${ENT}/box b on a.size = b.size`,
    `select a.note, c.code from ${ENT}/box a join /matrix/vault c on a.size = c.size`,
    `select * from ${ENT}/box as of '${PAST}'`,
    `select * from ${ENT}/box order by size desc`,
    `select covert from ${ENT}/box`,
    `select lower(covert) || note as both from ${ENT}/box`,
    `select case when covert = 'HIDDENb' then 1 else 2 end as guess, upper(note) from ${ENT}/box`,
    `select length(note) as n, top(covert, 3) from ${ENT}/box group by n`,
    `select size from ${ENT}/box order by coalesce(covert, note)`,
    `select top(note, 5), top(host, 5), percentile(size, 50), histogram(size, 3) from ${ENT}/box`,
    `select host || note as both, count(*) from ${ENT}/box group by both having max(length(covert)) > 1`,
    `select * from ${ENT}/box where size > length(note) and regexp_match(covert, 'HID')`,
    `select * from ${ENT}/box where 1=1 or note like '*'`,
    "select * from /system/class",
    "select * from /matrix/vault",
    `select max(covert) from ${ENT}/box`,
    `select note from ${ENT}/box where note in (select note from ${ENT}/box)`,
    `select host from ${ENT}/box where note in (select covert from ${ENT}/box)`,
    `select host from ${ENT}/box where covert in (select covert from ${ENT}/box)`,
    `select host from ${ENT}/box where note not in (select code from /matrix/vault)`,
    `select host, case when note in (select covert from ${ENT}/box) then note end as found from ${ENT}/box`,
    `select host, case when size in (select size from ${ENT}/box) then note end as found from ${ENT}/box`,
    `select a.host, b.note, b.covert from ${ENT}/box a left join (b:${ENT}/box) on b.size = a.size`,
    `select a.host, b.* from ${ENT}/box a left join (b:${ENT}/box) on b.host = a.host where b.note is null`,
    `select a.host, c.code from ${ENT}/box a left join (c:/matrix/vault) on c.code = a.note`,
    `select size from ${ENT}/box order by covert`,
    `select covert, count(*) from ${ENT}/box group by covert`,
    `select SECRET from ${ENT}/box`,
    `select a.covert from ${ENT}/box a join ${ENT}/box b on a.covert = b.covert`,
    `select host, lag(note) over (partition by size order by host) as before, lead(covert) over (order by size) as behind from ${ENT}/box`,
    `select host, row_number() over (order by covert) as n, sum(length(covert)) over () as most from ${ENT}/box`,
    `select * from (select host, note, covert from ${ENT}/box) x order by note`,
    `select host, uplink.note, lag(uplink.note) over (order by host) as before from ${ENT}/box`,
    `select max(n) as most from (select note as n from ${ENT}/box where size > 0) x`,
    `select host, uplink, uplink.note, uplink.covert, uplink.code from ${ENT}/box`,
    `select host from ${ENT}/box where uplink.code like 'VAULT*' or uplink.note is not null`,
    `select uplink.note as over, count(*) from ${ENT}/box group by over order by over`,
    `select host, lag(host) over (partition by uplink.covert order by uplink.note) as beside from ${ENT}/box`,
  ],
  union: [
    `select note from ${ENT}/box union select note from ${ENT}/box`,
    `select note from ${ENT}/box union all select code from /matrix/vault`,
    `select covert from ${ENT}/box union select note from ${ENT}/box`,
  ],
  selectEdgeTypes: ["select edgetype"],
  match: [
    "match (:box)",
    "match (:box)-[]->()",
    "match ()-[*]->()",
    `match ("box:b")-[*]->() return note, size`,
    `match ("box:ROWa")<-[]-()`,
    "match (:vault)",
    `match (:${ENT}/box where size > 0) return note`,
    `match (:${ENT}/box where covert = 'HIDDENb')`,
    `match (:${ENT}/box where note in (select note from ${ENT}/box)) return note`,
    `match (:${ENT}/box where note in (select code from /matrix/vault))`,
    "match (:box) return covert",
    `match (:box)-[]->() as of '${PAST}'`,
    "match path a, b (a:box)-[]->(b)",
  ],
  explain: [
    `explain select * from ${ENT}/box where note = 'x'`,
    `explain select * from ${ENT}/box where size = 1`,
    `explain select covert from ${ENT}/box`,
    `explain select host from ${ENT}/box where note match 'ROWn*' or uplink.note = 'x'`,
    `explain analyze select host from ${ENT}/box where note match 'SE*'`,
    "explain select * from /matrix/vault",
  ],
  insert: [
    `insert into ${ENT}/box host='ROWa', owner='bob'`,
    `insert into ${ENT}/box host='b', owner='bob', size='many'`,
    `insert into ${ENT}/box (host, owner) values ('b', 'bob')`,
    "insert into /matrix/vault code='x'",
  ],
  insertJson: [
    `insert json '{"class":"${ENT}/box","host":"ROWa","owner":"bob"}'`,
    `insert json '{"class":"/matrix/vault","code":"x"}'`,
  ],
  update: [
    `update ${ENT}/box set size=size where host='ROWa'`,
    `update ${ENT}/box set owner='bob' where id='box:ROWa'`,
    `update ${ENT}/box set size=size refresh`,
    `update ${ENT}/box set note = uplink.note where host='b'`,
    `update ${ENT}/box set rack = coalesce(uplink.covert, uplink.code, covert) where host='b'`,
    `update ${ENT}/box set uplink = uplink + 'box:ROWa' where host='m'`,
    `update ${ENT}/box set covert='x' where covert='HIDDENb'`,
  ],
  delete: [
    `delete from ${ENT}/box where id='box:ROWa'`,
    `delete from ${ENT}/box where covert='HIDDENb'`,
    `delete covert from ${ENT}/box`,
  ],
  createClass: [`create class ${ENT}/box (covert int)`],
  dropClass: [`drop class ${ENT}/box`, "drop class /matrix/vault"],
  alterClass: [`alter class ${ENT} drop column covert`, `alter class ${ENT} add column covert int`],
  createEdgeType: ["create edge type uplink"],
  dropEdgeType: ["drop edge type uplink"],
  batch: [`begin select * from ${ENT}/box; select note from ${ENT}/box; end`],
};

/** Searches with every kind of segment. */
export const SEARCHES: Readonly<Record<Segment["kind"], readonly string[]>> = {
  match: [
    `#${ENT}/box: | ROWa`,
    `#${ENT}/box: | HIDDENb`,
    `#${ENT}/box: | covert=HIDDENb`,
    "# ROWnote;HIDDENb;VAULTone;SEENb",
    `${ENT}/box: | HIDDENold;ROWpast;HID*;ROW*`,
    "#/matrix/vault: | VAULT*",
  ],
  top: [`#${ENT}/box: | top 100`],
  sort: [`#${ENT}/box: | sort note`, `#${ENT}/box: | sort covert`],
  print: [`#${ENT}/box: | print host, note`, `#${ENT}/box: | print covert`],
  uniq: [`#${ENT}/box: | uniq note`, `#${ENT}/box: | uniq covert`],
  group: [`#${ENT}/box: | group note`, `#${ENT}/box: | group covert`],
  time: [`${ENT}/box: | at ${PAST}`, `${ENT}/box: | last year`],
  call: [`#${ENT}/box: | call graph`, `#${ENT}/box: | call tree {"fields":["note"]}`],
  lua: [],
  delete: [
    `#${ENT}/box: | covert=HIDDENb | delete`,
    "#/matrix/vault: | VAULT* | delete",
    `#${ENT}/box: | ROWa | delete`,
  ],
};

const BASE: DataRule = { class: "/", access: "write" };
const NO_VAULT: DataRule = { class: "/matrix/vault", access: "none" };
const ROWS = { where: "owner = 'bob'" };
const COLUMNS = { hidden: ["covert"] };

interface User {
  readonly data: readonly DataRule[];
  /** Groups of which only this user is a member. */
  readonly groups?: Readonly<Record<string, GroupContent>>;
  /** Text that must not appear in answers. */
  readonly markers: RegExp;
  readonly hidesColumn: boolean;
}

export const USERS: Readonly<Record<string, User>> = {
  rows: {
    data: [BASE, NO_VAULT, { class: ENT, access: "read", ...ROWS }],
    markers: /ROW|HIDDENa|HIDDENold|VAULT/,
    hidesColumn: false,
  },
  columns: {
    data: [BASE, NO_VAULT, { class: ENT, access: "read", ...COLUMNS }],
    markers: /HIDDEN|VAULT/,
    hidesColumn: true,
  },
  both: {
    data: [BASE, NO_VAULT, { class: ENT, access: "write", ...ROWS, ...COLUMNS }],
    markers: /ROW|HIDDEN|VAULT/,
    hidesColumn: true,
  },
  readonly: { data: [{ class: "/", access: "read" }, NO_VAULT], markers: /VAULT/, hidesColumn: false },
  // One group gives access to the rows, another one to the column: no group gives access to a value in both.
  groups: {
    data: [{ class: "/matrix/system", access: "read" }],
    groups: {
      some: { writable: [ENT], readexps: [`${ENT}: owner = 'bob'`], fields: { [ENT]: "-covert" } },
      column: { readexps: [`${ENT}: owner = 'bob' and note = 'none'`] },
    },
    markers: /ROW|HIDDEN|VAULT/,
    hidesColumn: false,
  },
  listed: {
    data: [{ class: "/matrix/system", access: "read" }],
    groups: {
      listed: {
        readonly: [ENT],
        readexps: ["owner = 'bob'"],
        fields: { [ENT]: "host,owner,note,size", [`${ENT}/box`]: "*,-covert,-rack" },
      },
    },
    markers: /ROW|HIDDEN|VAULT/,
    hidesColumn: true,
  },
};

export interface Hidden extends AsyncDisposable {
  readonly world: World;
  /** Returns the body of the answer. `user`: one of `USERS`, `admin`, or another user with the same password. */
  call(user: string, options: InjectOptions & { readonly url: string }): Promise<string>;
  mql(user: string, text: string): Promise<string>;
  search(user: string, text: string): Promise<string>;
}

export async function openHidden(options: WorldOptions = {}): Promise<Hidden> {
  const world = await openWorld(options);
  await populate(world);
  const sessions = new Map<string, Promise<string>>();
  const sessionOf = async (username: string): Promise<string> => {
    const who = { company: "matrix", username, password: PASSWORD, remote: "test", traceparent: "" };
    return (await world.assembly.users.signIn(who)).session;
  };
  const call: Hidden["call"] = async (user, request) => {
    const session = sessions.get(user) ?? sessionOf(user);
    sessions.set(user, session);
    const url = `${request.url}${request.url.includes("?") ? "&" : "?"}sessionid=${await session}`;
    return (await world.app.inject({ ...request, url })).body;
  };
  return {
    world,
    call,
    mql: (user, text) => call(user, { method: "POST", url: "/mxobject/mql?meta=true", payload: text }),
    search: (user, text) => call(user, { method: "POST", url: "/mxobject/search?meta=true", payload: text }),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}

async function populate({ assembly }: World): Promise<void> {
  const admin = testPrincipal();
  await assembly.query.rows(
    admin,
    `create edge type uplink;
    create class ${ENT} (host varchar, owner varchar, covert varchar, note varchar, size int, keys(host), index(covert, note)) with version=true, autosearch=true;
    create class ${ENT}/box (rack varchar) with version=true, autosearch=true;
    create class /matrix/vault (code varchar, size int, keys(code)) with autosearch=true;
    insert into ${ENT}/box (host, owner, covert, note) values ('m', 'ann', 'HIDDENold', 'ROWpast') at '2025-01-01 00:00:00';
    insert into /matrix/vault code='VAULTone', size=1;
    insert into ${ENT}/box (host, owner, covert, note, size) values ('ROWa', 'ann', 'HIDDENa', 'ROWnote', 1), ('b', 'bob', 'HIDDENb', 'SEENb', 1), ('m', 'bob', 'HIDDENm', 'SEENm', 2);
    update ${ENT}/box set uplink='box:ROWa' where host='b'; update ${ENT}/box set uplink='vault:VAULTone' where host='m'`,
  );
  for (const [username, { data, groups = {} }] of Object.entries(USERS)) {
    const rights = { grants: ["*:read", "objects:write"], data };
    await assembly.users.create(admin, { username, password: PASSWORD, rights });
    for (const [name, content] of Object.entries(groups))
      await assembly.groups.create(admin, { ...content, name, member: [`U/${username}`] });
  }
}

/** The answer without the text that the caller sent. */
export function beyond(answer: string, said: string): string {
  let rest = answer;
  for (const word of said.match(/\w+/g) ?? []) if (/^(ROW|HIDDEN|VAULT)/.test(word)) rest = rest.replaceAll(word, "");
  return rest;
}
