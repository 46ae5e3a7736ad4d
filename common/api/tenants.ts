import { Type } from "typebox";
import { PASSWORD_MIN_CHARACTERS, TENANT_TEXT_MAX_CHARACTERS } from "../limits.ts";
import { PLAIN_OR_EMPTY } from "./documented.ts";

/** Schemas of `/companys`. */

const Text = Type.Optional(Type.String({ documented: { ...PLAIN_OR_EMPTY, maxLength: TENANT_TEXT_MAX_CHARACTERS } }));

const IMAGE =
  "^(data:image/[A-Za-z0-9_.+-]{1,64};base64,[A-Za-z0-9+/=]*|(https?:/)?/[^\\s\\u0000-\\u001f\\u007f-\\u009f]*)?$";
const Image = Type.Optional(
  Type.String({
    description: "Data URI with an image in base64, or the address of one",
    documented: { pattern: IMAGE },
  }),
);

const AMOUNT = { type: "string", pattern: "^(0|[1-9]\\d{0,14})?$" };
const CONFIG = {
  properties: {
    replication_factor: { type: "string", pattern: "^[1-9]?$" },
    max_objects: AMOUNT,
    max_bytes: AMOUNT,
    max_agents: AMOUNT,
    max_calls: { type: "string", pattern: "^([1-9]\\d?|1\\d{2}|2[0-4]\\d|25[0-6])?$" },
  },
};

export const CompanyName = Type.Object({ name: Type.String() });

export const CompanyList = Type.Object({
  deleted: Type.Optional(
    Type.Boolean({ description: "Deleted ones whose data is kept, instead of those that are there" }),
  ),
});

export const CompanyRemoval = Type.Object({
  name: Type.String(),
  purge: Type.Optional(Type.Boolean({ description: "Removes the data soon, without keeping it for a while" })),
});

const members = {
  name: Type.String(),
  fullname: Text,
  ospace: Type.Optional(
    Type.String({
      description: "Name space: a slash and one name; the name when absent",
      documented: { pattern: "^/[\\p{L}_][\\p{L}\\p{N}_]{0,63}$" },
    }),
  ),
  title: Text,
  web: Text,
  logo: Image,
  icon: Image,
  config: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description:
        "`replication_factor` is settled when it is made; `max_objects`, `max_bytes`, `max_agents` (hosts with an agent) and `max_calls` (at once, on each controller) are quotas, an empty text is none",
      documented: CONFIG,
    }),
  ),
};

export const CompanyUpdate = Type.Object(members);

export const CompanyCreation = Type.Object({
  ...members,
  name: Type.String({ documented: { pattern: "^[a-z][a-z0-9_]{0,47}$" } }),
  password: Type.Optional(
    Type.String({
      description: "Of the administrator; generated when absent",
      documented: { minLength: PASSWORD_MIN_CHARACTERS },
    }),
  ),
});

export const CompanyView = Type.Object({
  name: Type.String(),
  fullname: Type.String(),
  ospace: Type.String(),
  title: Type.String(),
  web: Type.String(),
  logo: Type.String(),
  icon: Type.String(),
  config: Type.Record(Type.String(), Type.String()),
  license: Type.String({ description: "JSON: expire, server, agent; -1 is no limit" }),
  use: Type.Optional(
    Type.Object(
      {
        objects: Type.Number(),
        bytes: Type.Number(),
        measuredMs: Type.Number({ description: "When it was counted; growth since is added" }),
        beyond: Type.Array(Type.String(), { description: "The quotas that are exceeded: objects, bytes" }),
      },
      { description: "What it has, when it has a quota and was counted" },
    ),
  ),
  purgeAtMs: Type.Optional(Type.Number({ description: "Of a deleted one: when its data goes" })),
});

export const CompanyViews = Type.Array(CompanyView);

export const CompanyAdministrator = Type.Object({
  username: Type.String(),
  password: Type.Optional(Type.String({ description: "When it was generated: told once" })),
});

export const CompanyRemoved = Type.String();
