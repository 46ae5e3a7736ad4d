import { Type } from "typebox";

/** Schemas of `/script/exec/js` and of the functions available to scripts. */

const Members = {
  filepath: Type.Optional(Type.String({ maxLength: 4_096, description: "File below /script of the file space" })),
  input: Type.Optional(
    Type.Unknown({ description: "What the script finds as INPUT: text, or any JSON in a JSON body" }),
  ),
  isfile: Type.Optional(Type.Boolean({ description: "Whether the body is the path of a file" })),
  rawdata: Type.Optional(Type.Boolean({ description: "Answer the bare result, without an envelope" })),
  issys: Type.Optional(
    Type.Boolean({
      description:
        "The file is in the system's file space only, for administrators. Otherwise in the users' space first, then in the system's",
    }),
  ),
};

export const ScriptInput = Type.Object(Members);

/** The value that the script put into OUTPUT; an empty text if none. */
export const ScriptOutput = Type.Unknown({ description: "The value that the script put into OUTPUT" });

export const FunctionsInput = Type.Object({});

export const FunctionList = Type.Array(
  Type.Object({
    name: Type.String({ description: "As it is called: <object>.<function>" }),
    object: Type.String(),
    summary: Type.String(),
    parameters: Type.Array(
      Type.Object({
        name: Type.String(),
        type: Type.String(),
        title: Type.String(),
        optional: Type.Boolean(),
        list: Type.Boolean({ description: "It takes all arguments from here on" }),
      }),
    ),
    returns: Type.String(),
    example: Type.String(),
    language: Type.Optional(Type.String({ description: "The language whose scripts find it; without it, each" })),
  }),
);
