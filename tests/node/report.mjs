// Sends the report's prompt with openai-node and prints the calls that it accumulated, as JSON.
// usage: node report.mjs BASE_URL PROMPT TOOLS_JSON stream|whole
import OpenAI from "openai";

const [baseURL, prompt, tools, way] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: "none" });
const request = {
  model: "scripted",
  messages: [{ role: "user", content: prompt }],
  tools: JSON.parse(tools),
};
const completion =
  way === "stream"
    ? await client.chat.completions.stream(request).finalChatCompletion()
    : await client.chat.completions.create(request);
const choice = completion.choices[0];
const calls = choice.message.tool_calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)]);
console.log(JSON.stringify({ finish_reason: choice.finish_reason, calls }));
