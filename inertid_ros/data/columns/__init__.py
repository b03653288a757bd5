"""Bags read by columns: messages of one layout are decoded at once, as long as they all have it.

``record_scan`` and ``sqlite_columns`` find the serialised messages of a topic without looking at each of them in
Python; ``cdr_layout`` decodes those of one layout; ``topic_columns`` keeps the layouts of a topic apart and compares
the first message of each with what a library makes of it; ``column_reading`` hands the columns to the assembler that
takes single messages as well. What does not fit raises ``UnsuitableError``, and the bag is read message by message.
"""
