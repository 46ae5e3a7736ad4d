import { Type } from "typebox";
import { PASSWORD_MIN_CHARACTERS, TENANT_CALLS_IN_FLIGHT_MAX, TENANT_TEXT_MAX_CHARACTERS } from "../limits.ts";
import { PLAIN_OR_EMPTY } from "./documented.ts";

/** Schemas of `/companys`. */

const text = (description: string) =>
  Type.Optional(Type.String({ description, documented: { ...PLAIN_OR_EMPTY, maxLength: TENANT_TEXT_MAX_CHARACTERS } }));

const IMAGE =
  "^(data:image/[A-Za-z0-9_.+-]{1,64};base64,[A-Za-z0-9+/=]*|(https?:/)?/[^\\s\\u0000-\\u001f\\u007f-\\u009f]*)?$";
const Image = Type.Optional(
  Type.String({
    description: "Data URI with an image in base64, or the address of one",
    documented: { pattern: IMAGE },
  }),
);

const amount = (description: string) => ({ type: "string", description, pattern: "^(0|[1-9]\\d{0,14})?$" });
const CONFIG = {
  properties: {
    replication_factor: {
      type: "string",
      description: "Copies of each row, settled when the tenant is made; a cluster only",
      pattern: "^[1-9]?$",
    },
    max_objects: amount("Most objects; empty: no quota"),
    max_bytes: amount("Most bytes of stored data; empty: no quota"),
    max_agents: amount("Most hosts with an agent; empty: no quota"),
    max_calls: {
      type: "string",
      description: `Most calls at once, on each controller; empty: ${TENANT_CALLS_IN_FLIGHT_MAX}`,
      pattern: "^([1-9]\\d?|1\\d{2}|2[0-4]\\d|25[0-6])?$",
    },
  },
};

export const CompanyName = Type.Object({ name: Type.String({ description: "Name of the tenant" }) });

export const CompanyList = Type.Object({
  deleted: Type.Optional(
    Type.Boolean({ description: "Deleted ones whose data is kept, instead of those that are there" }),
  ),
});

export const CompanyRemoval = Type.Object({
  name: Type.String({ description: "Name of the tenant" }),
  purge: Type.Optional(Type.Boolean({ description: "Removes the data soon, without keeping it for a while" })),
});

const members = {
  name: Type.String({ description: "Name of the tenant" }),
  fullname: text("Full name for people"),
  ospace: Type.Optional(
    Type.String({
      description: "Name space: a slash and one name; the name when absent",
      documented: { pattern: "^/[\\p{L}_][\\p{L}\\p{N}_]{0,63}$" },
    }),
  ),
  title: text("Title that clients show"),
  web: text("Address of the tenant's site"),
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
  name: Type.String({
    documented: { pattern: "^[a-z][a-z0-9_]{0,47}$" },
    description: "Name of the tenant: lower-case letters, digits and _",
  }),
  password: Type.Optional(
    Type.String({
      description: "Of the administrator; generated when absent",
      documented: { minLength: PASSWORD_MIN_CHARACTERS },
    }),
  ),
});

export const CompanyView = Type.Object({
  name: Type.String({ description: "Name of the tenant" }),
  fullname: Type.String({ description: "Full name for people; empty: none" }),
  ospace: Type.String({ description: "Name space of its classes and keys" }),
  title: Type.String({ description: "Title that clients show; empty: none" }),
  web: Type.String({ description: "Address of the tenant's site; empty: none" }),
  logo: Type.String({ description: "Data URI or address of an image; empty: none" }),
  icon: Type.String({ description: "Data URI or address of an image; empty: none" }),
  config: Type.Record(Type.String(), Type.String(), { description: "Quotas and replication factor, as texts" }),
  license: Type.String({ description: "JSON: expire, server, agent; -1 is no limit" }),
  use: Type.Optional(
    Type.Object(
      {
        objects: Type.Number({ description: "Number of objects" }),
        bytes: Type.Number({ description: "Bytes of stored data" }),
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
  username: Type.String({ description: "Name of the administrator" }),
  password: Type.Optional(Type.String({ description: "When it was generated: told once" })),
});

export const CompanyRemoved = Type.String();
