import { Type, type Static } from "typebox";
import { PLAIN_OR_EMPTY, PLAIN_TEXT } from "./documented.ts";
import { Revision } from "./revision.ts";

/** Schemas of `/group`: groups of hosts that jobs run on. */

/** 1 to 65535, or empty. */
const PORT = "^([1-9]\\d{0,3}|[1-5]\\d{4}|6[0-4]\\d{3}|65[0-4]\\d{2}|655[0-2]\\d|6553[0-5])?$";

const GroupType = Type.Union([Type.Literal("group"), Type.Literal("proxy")], {
  description: "proxy: its hosts are behind another one",
});

export const GroupInput = Type.Object({
  name: Type.String({ documented: PLAIN_TEXT, description: "Name of the group" }),
  gtype: GroupType,
  hosts: Type.Array(
    Type.Object({
      host: Type.String({ documented: PLAIN_TEXT, description: "Name of the host" }),
      proxy: Type.Optional(
        Type.String({
          description:
            "the host that leads there, in a group of type proxy; without it, the record of the host says how to reach it",
          documented: PLAIN_OR_EMPTY,
        }),
      ),
      port: Type.Optional(
        Type.Union(
          [
            Type.String({ documented: { pattern: PORT } }),
            Type.Integer({ documented: { minimum: 1, maximum: 65_535 } }),
          ],
          { description: "Port of SSH behind proxy; empty: 22. Without effect without proxy" },
        ),
      ),
      username: Type.Optional(
        Type.String({
          documented: PLAIN_OR_EMPTY,
          description: "User of SSH behind proxy, where jobs need one. Without effect without proxy",
        }),
      ),
      password: Type.Optional(
        Type.String({
          description:
            "or a private key in PEM; never answered; missing or masked: the stored one stays, empty: it goes. Needed behind proxy; without effect without it",
        }),
      ),
      sshkey: Type.Optional(
        Type.String({
          description:
            "SHA256:… of the key that the host is to show; missing: the one on record stays, empty: it is forgotten",
          documented: { pattern: "^(SHA256:[A-Za-z0-9+/]{43})?$" },
        }),
      ),
    }),
    { description: "Hosts of the group, in place of the present ones" },
  ),
});
export type GroupInput = Static<typeof GroupInput>;

export const GroupSelect = Type.Object({ gtype: GroupType, name: Type.String({ description: "Name of the group" }) });

export const GroupView = Type.Object({
  name: Type.String({ description: "Name of the group" }),
  gtype: GroupType,
  hosts: Type.Array(
    Type.Object({
      host: Type.String({ description: "Name of the host" }),
      proxy: Type.String({ description: "The host that leads there; empty: none" }),
      port: Type.String({ description: "Port of SSH behind proxy; empty: 22" }),
      username: Type.String({
        description: "User of SSH behind proxy; empty: none, and jobs do not reach the host there",
      }),
      password: Type.String({ description: "Mask of the password or private key; empty: none" }),
      sshkey: Type.String({ description: "SHA-256 fingerprint of the key that the host is to show; empty: not known" }),
    }),
    { description: "Hosts of the group" },
  ),
  revision: Revision,
});
export type GroupView = Static<typeof GroupView>;
