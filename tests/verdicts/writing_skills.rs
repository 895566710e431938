//! Files of writing-skills and skill-creator.
