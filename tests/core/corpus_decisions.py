"""Cases whose expected reading is wrong for pegmend, or cannot be known: what is read instead, and why."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Decision:
    """Why some cases are not read as their source expects, and by outcome the ids of those cases.

    The outcome is the code of the documented error, or what differs: "other calls", "other content", "other reasoning".
    """

    reason: str
    cases: dict[str, tuple[str, ...]]


DECISIONS = (
    Decision(
        "The text ends amid a call. The source's streaming parser hands out what there is of it; here half a "
        "call is none.",
        {
            "tool_calls_unparseable": (
                "llamacpp-b11434-Cohere2MoE-L2970-10",
                "llamacpp-b11434-Kimi-K2-Thinking-L5078-09",
                "llamacpp-b11434-Reka-Edge-L5384-07",
                "vllm-deepseek_v32-8a5759c0",
                "vllm-gemma4_streaming_reasoning-7d5cd03d",
                "vllm-gemma4_streaming_reasoning-aa27392f",
                "vllm-gemma4_streaming_reasoning-c09d6dff",
                "vllm-gemma4_streaming_reasoning-c6a8773f",
                "vllm-gemma4_streaming_reasoning-c7fdf9ba",
                "vllm-gemma4_streaming_reasoning-fa57a7bd",
                "vllm-gemma4_streaming_reasoning-fbec296f",
                "vllm-gemma4_tool_parser-f1691a12",
                "vllm-granite-0d4c330b",
                "vllm-granite_20b_fc_tool_parser-5b3f4196",
                "vllm-granite_tool_parser-1d19b77e",
                "vllm-inkling-32bb0983",
                "vllm-inkling-40246e8e",
                "vllm-k2_horizon_tool_parser-5ab431ee",
                "vllm-kimi_k2_tool_parser-28477244",
                "vllm-kimi_k3_tool_parser-6ae94533",
                "vllm-parser_engine-52690bf9",
                "vllm-parser_engine-c6a2aa90",
                "vllm-parser_engine-dd8a2dfc",
                "vllm-plamo3-17907fce",
                "vllm-plamo3-2ad76a70",
                "vllm-plamo3-33bfcf37",
                "vllm-plamo3-38fbc9ec",
                "vllm-plamo3-41a25ad9",
                "vllm-plamo3-4879511f",
                "vllm-plamo3-5ec4749e",
                "vllm-plamo3-6fe67114",
                "vllm-plamo3-7366ca4b",
                "vllm-plamo3-8470e1b9",
                "vllm-plamo3-893a2822",
                "vllm-plamo3-8a5ae769",
                "vllm-plamo3-8a6a144a",
                "vllm-plamo3-8ecc6bbb",
                "vllm-plamo3-95d6fc49",
                "vllm-plamo3-ada6c5cc",
                "vllm-plamo3-cb28379a",
                "vllm-plamo3-e31c02a6",
                "vllm-plamo3-e3ebd30f",
                "vllm-plamo3-eca43db6",
                "vllm-plamo3-fc2374b5",
                "vllm-step3_tool_parser-a7facacc",
                "vllm-streaming-97caaea2",
                "vllm-tool_calls-a76c5904",
            ),
        },
    ),
    Decision(
        "The text ends with what may begin a tag, and the source's streaming parser still holds it back. Here "
        "the text has ended.",
        {
            "other content": (
                "ollama-qwen3vl_nonthinking-L160",
                "vllm-dots_tool_parser-02d15e80",
            ),
            "other reasoning": ("ollama-deepseek3-L677",),
        },
    ),
    Decision(
        "The source had thinking switched off, which a raw text does not tell: a closing tag ends thoughts.",
        {
            "other content": (
                "ollama-cogito-L205",
                "ollama-cogito-L332",
                "ollama-cogito-L64",
                "ollama-qwen3vl_nonthinking-L22",
                "ollama-qwen3vl_nonthinking-L59",
                "ollama-qwen3vl_nonthinking-L70",
                "ollama-qwen3vl_thinking-L494",
            ),
        },
    ),
    Decision(
        "The call is to a tool that is not declared. The source drops it or takes it for content; here it is "
        "the documented error.",
        {
            "tool_calls_undeclared": (
                "llamacpp-b11434-openai-gpt-oss-120b-L6569-13",
                "llamacpp-b11434-openai-gpt-oss-120b-L6578-14",
                "ollama-tools-L415",
                "ollama-tools-L429",
                "vllm-granite_20b_fc_tool_parser-0b367525",
                "vllm-granite_20b_fc_tool_parser-7f8f3b73",
                "vllm-granite_tool_parser-42b819d4",
                "vllm-minicpm5xml_tool_parser-98d7bd49",
                "vllm-minimax_m2-b4ab47df",
                "vllm-step3_tool_parser-d9aca3b7",
            ),
        },
    ),
    Decision(
        "Nothing is known of the parameter's type. The source takes any text for a string; here exact JSON is "
        "taken as such.",
        {
            "other calls": (
                "vllm-minimax_m2-5caba6bc",
                "vllm-minimax_m2-df2d86d9",
                "vllm-minimax_m2_tool_parser-40953523",
                "vllm-minimax_m2_tool_parser-d41f89dd",
                "vllm-nemotron_v3-d2707624",
                "vllm-qwen3-340a9014",
                "vllm-qwen3-7ba7b5c7",
            ),
        },
    ),
    Decision(
        "The source's parser, which its test calls without a schema, returns numbers and literals as strings.",
        {
            "other calls": (
                "vllm-gemma4_streaming_reasoning-3f324404",
                "vllm-gemma4_streaming_reasoning-9e4589c2",
                "vllm-gemma4_streaming_reasoning-a4a1b7f5",
                "vllm-gemma4_streaming_reasoning-a80c4f00",
                "vllm-gemma4_streaming_reasoning-b02994e2",
                "vllm-gemma4_streaming_reasoning-cd653394",
            ),
        },
    ),
    Decision(
        "The source corrects the name of a tool or a parameter, or drops a parameter that is not declared. "
        "The engine does none of that.",
        {
            "other calls": (
                "vllm-deepseekv32_tool_parser-951bec19",
                "vllm-minicpm5xml_tool_parser-3641133e",
                "vllm-minicpm5xml_tool_parser-b0890932",
                "vllm-minicpm5xml_tool_parser-bbdcef32",
                "vllm-minicpm5xml_tool_parser-c1425386",
                "vllm-minicpm5xml_tool_parser-d3862e40",
            ),
            "tool_calls_undeclared": (
                "vllm-minicpm5xml_tool_parser-163b8541",
                "vllm-minicpm5xml_tool_parser-6bdd417b",
                "vllm-muse-91669e87",
                "vllm-muse-a895610d",
            ),
        },
    ),
    Decision(
        "The value is text by its mark or its schema, or the reverse, and the source decides otherwise than "
        "its format says.",
        {
            "other calls": (
                "llamacpp-b11434-MiniMax-M3-L5826-18",
                "ollama-lfm2-L881",
                "vllm-deepseekv32_tool_parser-af933d7a",
            ),
        },
    ),
    Decision(
        "The call is broken in a way that has more than one mending; the source guesses.",
        {
            "tool_calls_unparseable": (
                "ollama-gemma4-L1376",
                "ollama-gemma4-L1413",
                "ollama-gemma4-L1428",
                "ollama-glm46-L1036",
                "render-LFM2.5-8B-A1B-multiline-string",
                "vllm-gemma4_tool_parser-46800ec4",
                "vllm-gemma4_tool_parser-c5d072c6",
                "vllm-lfm2_tool_parser-8a24cd63",
                "vllm-lfm2_tool_parser-c5c1da82",
                "vllm-longcat_tool_parser-6c7072d9",
                "vllm-longcat_tool_parser-78de76b8",
                "vllm-minimax_m3-2b5e5721",
                "vllm-minimax_m3-650e427b",
                "vllm-minimax_m3-720b56d4",
                "vllm-seed_oss-95235bda",
                "vllm-tool_calls-c2d5fbb0",
            ),
        },
    ),
    Decision(
        "The source drops the words behind the calls; here they are content.",
        {
            "other content": (
                "vllm-deepseekv31_tool_parser-796da531",
                "vllm-granite_tool_parser-5c583ef9",
                "vllm-kimi_k2_tool_parser-2fafe915",
                "vllm-step3p5_tool_parser-20089386",
            ),
        },
    ),
    Decision(
        "What is expected is an accident of the source's test: another text's reading, a leaked buffer, a "
        "decoding error.",
        {
            "other calls": (
                "vllm-granite4_tool_parser-19dffc40",
                "vllm-granite4_tool_parser-721aa53a",
                "vllm-granite4_tool_parser-9ce4e5e7",
                "vllm-granite4_tool_parser-f0f93e22",
                "vllm-xlam_tool_parser-abedb8b8",
            ),
            "other content": (
                "vllm-lfm2_tool_parser-b1eef704",
                "vllm-minicpm5xml_tool_parser-8b86e02d",
                "vllm-minicpmv_reasoning-c929a6a3",
                "vllm-xlam_tool_parser-13e48640",
                "vllm-xlam_tool_parser-5e17caaa",
            ),
            "tool_calls_unparseable": ("vllm-minicpm5xml_tool_parser-df26871d",),
        },
    ),
    Decision(
        "The text holds the borders of two turns, as a history does and a model's turn does not.",
        {
            "other content": ("render-NVIDIA-Nemotron-Nano-v2-three-calls-content",),
        },
    ),
    Decision(
        "The source knows from the request that the answer is JSON of a certain kind, and unwraps it.",
        {
            "other calls": ("vllm-parse-e5371c1a",),
            "other content": ("llamacpp-b11434-meta-llama-Llama-3.1-8B-Instruct-L6323-02",),
        },
    ),
    Decision(
        "The source's test does not look at the reasoning, or takes the prompt's state for known.",
        {
            "other reasoning": (
                "vllm-nemotron_v3-e8225112",
                "vllm-reasoning-e8f158e7",
            ),
            "tool_calls_undeclared": ("vllm-nemotron_v3-349c965f",),
        },
    ),
    Decision(
        "What stands between the tags has the form of GLM's call without arguments.",
        {
            "tool_calls_undeclared": ("vllm-parser_engine-f190c646",),
        },
    ),
    Decision(
        "The request names one of several variants of the format, and the source refuses the others.",
        {
            "other calls": (
                "vllm-k2_horizon_tool_parser-0c3bb832",
                "vllm-k2_horizon_tool_parser-38cb8101",
                "vllm-k2_horizon_tool_parser-9c316744",
            ),
        },
    ),
    Decision(
        "A list without calls: the source's parser drops it, or the words with it.",
        {
            "other content": ("vllm-lfm2_tool_parser-a092a16f",),
        },
    ),
    Decision(
        "Words between the markers of a section belong to no part of a turn; the source drops them.",
        {"tool_calls_unparseable": ("kimi/k2i-vllm-noise-between-markers",)},
    ),
    Decision(
        "The call is to a tool of the model's own that the request does not declare; the source expects silence.",
        {"tool_calls_undeclared": ("gpt-oss/llamacpp-builtin-python-recipient",)},
    ),
    Decision(
        "A list of calls is cut in the second one. The first is complete, and stays, as in all other formats.",
        {"other calls": ("llama/l4-truncated-missing-close-bracket",)},
    ),
)


def decided(case: str) -> str | None:
    """Return the outcome that was decided for a case, None where its source is right."""
    outcomes = (outcome for one in DECISIONS for outcome, cases in one.cases.items() if case in cases)
    return next(outcomes, None)
