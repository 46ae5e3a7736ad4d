import { Type } from "typebox";
import { PLAIN_TEXT, TTL } from "./documented.ts";

/** Schemas of `/appcontext`. */

const Ttl = Type.Optional(Type.Integer({ description: "Seconds; 0 or absent: for ever", documented: TTL }));

export const VariableKey = Type.Object({
  key: Type.String({ documented: PLAIN_TEXT, description: "Name of the variable" }),
});

export const VariableWrite = Type.Object({
  key: Type.String({ documented: PLAIN_TEXT, description: "Name of the variable" }),
  ttl: Ttl,
});

export const CollectionName = Type.Object({
  name: Type.String({ documented: PLAIN_TEXT, description: "Name of the collection" }),
});

export const CollectionRead = Type.Object({
  name: Type.String({ documented: PLAIN_TEXT, description: "Name of the collection" }),
  where: Type.Optional(Type.String({ description: "A condition, such as size > 5 && tags contains 'red'" })),
  type: Type.Optional(
    Type.Union([Type.Literal("first"), Type.Literal("last"), Type.Literal("")], {
      description: "first, last: only the oldest or the newest item, an empty text when there is none",
    }),
  ),
});

export const ItemCreate = Type.Object({
  name: Type.String({ documented: PLAIN_TEXT, description: "Name of the collection" }),
  ttl: Ttl,
});

export const ItemName = Type.Object({
  name: Type.String({ documented: PLAIN_TEXT, description: "Name of the collection" }),
  id: Type.String({ documented: PLAIN_TEXT, description: "Id of the item, as its creation answered it" }),
});

export const ItemWrite = Type.Object({
  name: Type.String({ documented: PLAIN_TEXT, description: "Name of the collection" }),
  id: Type.String({ documented: PLAIN_TEXT, description: "Id of the item" }),
  ttl: Ttl,
});

/** An item, as its text holds it. */
export const ItemText = Type.Record(Type.String(), Type.Unknown());

export const ItemReply = Type.Object(
  { id: Type.String({ description: "Id of the item; its other members are those that were stored" }) },
  { additionalProperties: true },
);

export const CollectionReply = Type.Union([Type.Array(ItemReply), ItemReply, Type.String()]);
