import { Type } from "typebox";
import { PLAIN_TEXT, TTL } from "./documented.ts";

/** Schemas of `/appcontext`. */

const Ttl = Type.Optional(Type.Integer({ description: "Seconds; 0 or absent: for ever", documented: TTL }));

const Text = Type.String({ documented: PLAIN_TEXT });

export const VariableKey = Type.Object({ key: Text });

export const VariableWrite = Type.Object({ key: Text, ttl: Ttl });

export const CollectionName = Type.Object({ name: Text });

export const CollectionRead = Type.Object({
  name: Text,
  where: Type.Optional(Type.String({ description: "A condition, such as size > 5 && tags contains 'red'" })),
  type: Type.Optional(
    Type.Union([Type.Literal("first"), Type.Literal("last"), Type.Literal("")], {
      description: "first, last: only the oldest or the newest item, an empty text when there is none",
    }),
  ),
});

export const ItemCreate = Type.Object({ name: Text, ttl: Ttl });

export const ItemName = Type.Object({ name: Text, id: Text });

export const ItemWrite = Type.Object({ name: Text, id: Text, ttl: Ttl });

/** An item, as its text holds it. */
export const ItemText = Type.Record(Type.String(), Type.Unknown());

export const ItemReply = Type.Object({ id: Type.String() }, { additionalProperties: true });

export const CollectionReply = Type.Union([Type.Array(ItemReply), ItemReply, Type.String()]);
