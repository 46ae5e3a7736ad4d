import { Type } from "typebox";

/** Schemas of `/appcontext`. */

const Ttl = Type.Optional(Type.Integer({ description: "Seconds; 0 or absent: for ever" }));

export const VariableKey = Type.Object({ key: Type.String() });

export const VariableWrite = Type.Object({ key: Type.String(), ttl: Ttl });

export const CollectionName = Type.Object({ name: Type.String() });

export const CollectionRead = Type.Object({
  name: Type.String(),
  where: Type.Optional(Type.String({ description: "A condition, such as size > 5 && tags contains 'red'" })),
  type: Type.Optional(
    Type.Union([Type.Literal("first"), Type.Literal("last"), Type.Literal("")], {
      description: "first, last: only the oldest or the newest item, an empty text when there is none",
    }),
  ),
});

export const ItemCreate = Type.Object({ name: Type.String(), ttl: Ttl });

export const ItemName = Type.Object({ name: Type.String(), id: Type.String() });

export const ItemWrite = Type.Object({ name: Type.String(), id: Type.String(), ttl: Ttl });

export const ItemReply = Type.Object({ id: Type.String() }, { additionalProperties: true });

export const CollectionReply = Type.Union([Type.Array(ItemReply), ItemReply, Type.String()]);
