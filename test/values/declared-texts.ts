import type { Endpoint } from "../../controller/http/interface/endpoint.ts";
import { type Coverage, takesValues, tried, untried } from "./declared.ts";

/** Endpoints, sockets and streams that store or pass on texts, in addition to those that take values of any type. */

const NAMES = untried("takes names and paths of things that are there, or makes one of a checked name");
const SECRETS = untried("takes passwords, codes and keys, which no answer has");
const ASKS = untried("keeps nothing of what it is given");

/** Endpoints that take texts in their own members. */
export const TEXTS_IN: Readonly<Record<string, Coverage>> = {
  "POST /companys": tried("`/companys` `title`"),
  "PUT /companys": tried("`/companys` `title`"),
  "POST /companys/:name/restore": NAMES,
  "POST /audit/verify": ASKS,
  "POST /agent/token": NAMES,
  "POST /agent/enrol": SECRETS,
  "POST /job": tried("`/job` `description`", "`/job` `exec`"),
  "PUT /job": untried("takes what `POST /job` takes"),
  "POST /job/merge": untried("takes what `POST /job` takes"),
  "PATCH /job/*": untried("takes what `POST /job` takes"),
  "POST /job/batch": tried("`/job/batch` `param`"),
  "POST /job/exec/*": untried("takes what `GET /job/exec` takes"),
  "POST /job/retry/:runid": untried("takes a `param` as `/job/exec` does"),
  "POST /job/cancel/:runid": NAMES,
  "POST /job/context/:sid": tried("`/job/context`"),
  "PUT /job/context/:sid": tried("`/job/context`"),
  "POST /group": NAMES,
  "PUT /group": NAMES,
  "POST /monitoring/policy": tried("`/monitoring/policy` `attrs`"),
  "POST /monitoring/policy/log": untried("takes attributes as `POST /monitoring/policy` does, and expressions"),
  "POST /monitoring/policy/preview": ASKS,
  "PATCH /monitoring/policy/:name": untried("takes what `POST /monitoring/policy` takes"),
  "POST /monitoring/policy/deploy/:name": NAMES,
  "POST /monitoring/policy/undeploy/:name": NAMES,
  "POST /monitoring/targets/confirm": NAMES,
  "POST /mxobject/system/schema/:table": NAMES,
  "PUT /mxobject/rule": tried("`/mxobject/rule`"),
  "POST /mxobject/rule/new": ASKS,
  "POST /mxobject/rule/try": ASKS,
  "POST /pattern/:name": tried("`/pattern` `eg`"),
  "POST /config/set": tried("`/config/set`", "`/config/set`, JSON", "`/config/set`, multipart"),
  "POST /config/del": NAMES,
  "POST /config/rollback": NAMES,
  "POST /config/schema": untried("takes conditions that values fulfil, checked as such"),
  "POST /fs/rename": NAMES,
  "POST /fs/copy": NAMES,
  "POST /fs/move": NAMES,
  "POST /fs/index/*": NAMES,
  "POST /files/restore/*": NAMES,
  "POST /fs/push/*": NAMES,
  "POST /fs/pull/*": NAMES,
  "POST /fs/tolocal/*": NAMES,
  "POST /tagdir/:domain": NAMES,
  "PUT /tagdir/:domain": NAMES,
  "PUT /tagdir/:domain/rename": NAMES,
  "PUT /:domain/addtags": NAMES,
  "PUT /tagdir/:domain/deletetags": NAMES,
  "POST /admin/perms/group": untried("takes names, and conditions of MQL"),
  "PUT /admin/perms/group": untried("takes names, and conditions of MQL"),
  "PUT /mxobject/trigger": tried("`/mxobject/trigger`"),
  "POST /user/signin": SECRETS,
  "POST /user/goauth": SECRETS,
  "POST /user/login": SECRETS,
  "POST /user/tokens": NAMES,
  "POST /user/secondfactor": SECRETS,
  "POST /user/secondfactor/confirm": SECRETS,
  "POST /user/secondfactor/remove": SECRETS,
  "POST /user/password": SECRETS,
  "POST /user/account/password": SECRETS,
  "POST /user/account/sessions": SECRETS,
  "POST /user/account/secondfactor": SECRETS,
  "POST /user/account/secondfactor/confirm": SECRETS,
  "POST /user/account/secondfactor/remove": SECRETS,
  "POST /admin/users/new": tried("`/admin/users` `remark`"),
  "POST /admin/users/:userid": untried("takes what `POST /admin/users/new` takes"),
  "POST /admin/users/home": NAMES,
  "POST /user/settings/home": NAMES,
  "POST /user/openid/link": SECRETS,
  "POST /user/openid/unlink": SECRETS,
  "PUT /admin/users/:userid/openid": NAMES,
};

const LINES = untried("answers lines of a log");

/** Sockets, and endpoints that answer with an event stream. */
export const STREAMS: Readonly<Record<string, Coverage>> = {
  "/websocket/:subject": tried("notification", "`/agent` to a channel", "script `message.send`"),
  "/config/watch": untried("answers entries as `/config/list` does"),
  "/job/output/:runid/:host": untried("answers bytes in base64; `/job/exec` answers them as text"),
  "/consolelog/rule/follow": LINES,
  "/consolelog/serverjs/follow": LINES,
  "/consolelog/trigger/follow": LINES,
};

/** Returns true if the endpoint makes a change with texts in its own members. */
export function takesTexts(endpoint: Endpoint): boolean {
  const isChange = ["POST", "PUT", "PATCH"].includes(endpoint.method);
  return isChange && !takesValues(endpoint) && holdsText(endpoint.input);
}

/** Returns true if the schema, or a part of it, accepts more than one text. */
function holdsText(schema: unknown): boolean {
  if (typeof schema !== "object" || schema === null) return false;
  const parts = schema as Readonly<Record<string, unknown>>;
  if (parts["type"] === "string" && parts["const"] === undefined) return true;
  const within = ["properties", "patternProperties"].flatMap((name) => Object.values((parts[name] ?? {}) as object));
  const variants = (parts["anyOf"] ?? []) as readonly unknown[];
  return [...within, parts["items"], parts["additionalProperties"], ...variants].some(holdsText);
}
