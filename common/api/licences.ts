import { Type } from "typebox";

/** Schemas of `/license`. */

export const LicenceName = Type.Object({ name: Type.String({ description: "Name of the tenant" }) });

export const LicenceImport = Type.Object({});

const Limit = Type.Number({ description: "-1: no limit" });

export const LicenceView = Type.Object({
  name: Type.String({ description: "The tenant" }),
  expire: Type.Number({ description: "Milliseconds since 1970; -1: never" }),
  server: Limit,
  agent: Limit,
  serial: Type.Optional(Type.Number({ description: "Of the imported document: a later one has a greater one" })),
});
