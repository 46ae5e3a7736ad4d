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
    object: Type.String({ description: "Object that the function belongs to" }),
    summary: Type.String({ description: "The work of the function, in a sentence" }),
    parameters: Type.Array(
      Type.Object({
        name: Type.String({ description: "Name of the argument" }),
        type: Type.String({ description: "Type of the argument" }),
        title: Type.String({ description: "Meaning of the argument" }),
        optional: Type.Boolean({ description: "True: the argument may be left out" }),
        list: Type.Boolean({ description: "It takes all arguments from here on" }),
      }),
      { description: "Arguments, in their order" },
    ),
    returns: Type.String({ description: "The result, in words; empty: none" }),
    example: Type.String({ description: "A call of the function" }),
    language: Type.Optional(Type.String({ description: "The language whose scripts find it; without it, each" })),
  }),
);
